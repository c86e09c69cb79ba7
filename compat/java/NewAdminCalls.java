import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;

/** What Admin of kafka-clients 4.4 has beyond 2.8; AdminCalls runs it. */
final class NewAdminCalls {
  private NewAdminCalls() {}

  static void run(AdminCalls c) {
    producers(c);
    listings(c);
    refusals(c);
  }

  private static void producers(AdminCalls c) {
    String id = c.prefix + "-txn";
    Properties p = new Properties();
    p.putAll(c.props);
    p.put("transactional.id", id);
    p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
    p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
    TopicPartition second = new TopicPartition(c.topic, 1);
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
      producer.initTransactions();
      producer.beginTransaction();
      c.call("describeProducers", () -> {
        producer.send(new ProducerRecord<>(c.topic, 1, "k", "v")).get();
        ProducerState s = c.admin.describeProducers(Collections.singletonList(second)).all().get().get(second).activeProducers().get(0);
        AdminCalls.same(0L, s.currentTransactionStartOffset().getAsLong());
        AdminCalls.same(0, s.lastSequence());
      });
      c.call("listTransactions", () -> {
        boolean found = false;
        for (TransactionListing t : c.admin.listTransactions().all().get()) {
          found |= t.transactionalId().equals(id) && t.state() == TransactionState.ONGOING;
        }
        AdminCalls.check("it is listed", found);
      });
      c.call("describeTransactions", () -> {
        TransactionDescription d = c.admin.describeTransactions(Collections.singletonList(id)).all().get().get(id);
        AdminCalls.same(Collections.singleton(second), d.topicPartitions());
      });
      c.call("abortTransaction", () -> {
        ProducerState s = c.admin.describeProducers(Collections.singletonList(second)).all().get().get(second).activeProducers().get(0);
        c.admin.abortTransaction(new AbortTransactionSpec(second, s.producerId(), (short) s.producerEpoch(), s.coordinatorEpoch().orElse(0))).all().get();
        AdminCalls.check("no start", !c.admin.describeProducers(Collections.singletonList(second)).all().get().get(second)
            .activeProducers().get(0).currentTransactionStartOffset().isPresent());
      });
      c.call("fenceProducers", () -> {
        c.admin.fenceProducers(Collections.singletonList(id)).all().get();
        try {
          producer.commitTransaction();
        } catch (ProducerFencedException | InvalidProducerEpochException e) {
          return;
        }
        throw new IllegalStateException("the producer is not fenced");
      });
      c.call("forceTerminateTransaction", () -> c.admin.forceTerminateTransaction(id).result().get());
    }
  }

  private static void listings(AdminCalls c) {
    c.call("listGroups", () -> c.admin.listGroups().all().get());
    c.call("listConfigResources", () -> {
      boolean found = false;
      for (ConfigResource r : c.admin.listConfigResources().all().get()) {
        found |= r.type() == ConfigResource.Type.TOPIC && r.name().equals(c.topic);
      }
      AdminCalls.check("the topic is listed", found);
    });
    c.call("configs of a group", () -> {
      ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, c.prefix + "-group");
      c.alter(group, AlterConfigOp.OpType.SET, "consumer.session.timeout.ms", "50000");
      AdminCalls.same("50000", value(c, group, "consumer.session.timeout.ms"));
      c.alter(group, AlterConfigOp.OpType.DELETE, "consumer.session.timeout.ms", null);
    });
    c.call("configs of client metrics", () -> {
      ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, c.prefix + "-metrics");
      c.alter(metrics, AlterConfigOp.OpType.SET, "interval.ms", "20000");
      AdminCalls.same("20000", value(c, metrics, "interval.ms"));
      AdminCalls.check("it is listed", c.admin.listConfigResources(Collections.singleton(ConfigResource.Type.CLIENT_METRICS),
          new ListConfigResourcesOptions()).all().get().contains(metrics));
      c.alter(metrics, AlterConfigOp.OpType.DELETE, "interval.ms", null);
    });
    c.call("configs of loggers", () -> {
      ConfigResource logger = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, Integer.toString(c.admin.describeCluster().controller().get().id()));
      Config levels = c.admin.describeConfigs(Collections.singletonList(logger)).all().get().get(logger);
      AdminCalls.check("there are loggers", !levels.entries().isEmpty());
      String name = levels.entries().iterator().next().name();
      c.alter(logger, AlterConfigOp.OpType.SET, name, "DEBUG");
      AdminCalls.same("DEBUG", value(c, logger, name));
      c.alter(logger, AlterConfigOp.OpType.SET, name, "INFO");
    });
    c.call("listOffsets of newer kinds", () -> {
      AdminCalls.same(9L, c.offset(OffsetSpec.maxTimestamp()));
      AdminCalls.same(4L, c.offset(OffsetSpec.earliestLocal()));
    });
    c.call("describeTopics by id", () -> {
      org.apache.kafka.common.Uuid id = c.admin.describeTopics(Collections.singletonList(c.topic)).allTopicNames().get().get(c.topic).topicId();
      AdminCalls.same(c.topic, c.admin.describeTopics(org.apache.kafka.common.TopicCollection.ofTopicIds(Collections.singletonList(id)))
          .allTopicIds().get().get(id).name());
    });
  }

  private static String value(AdminCalls c, ConfigResource of, String key) throws Exception {
    return c.admin.describeConfigs(Collections.singletonList(of)).all().get().get(of).get(key).value();
  }

  private static void refusals(AdminCalls c) {
    c.refused("describeClassicGroups of none", GroupIdNotFoundException.class, () ->
        c.admin.describeClassicGroups(Collections.singletonList(c.prefix + "-none")).all().get());
    c.refused("describeMetadataQuorum", UnsupportedVersionException.class, () -> c.admin.describeMetadataQuorum().quorumInfo().get());
    c.refused("updateFeatures", InvalidUpdateVersionException.class, () -> c.admin.updateFeatures(
        Collections.singletonMap("no.such.feature", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).all().get());
  }
}
