import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/**
 * Every method of Admin of kafka-clients 2.8 that makes sense on one broker, each called once with its result checked:
 * AdminCalls BROKER PREFIX. It prints a line for each; the first wrong result ends it. With newer clients class NewAdminCalls
 * goes on from here.
 */
public final class AdminCalls {
  interface Call {
    void run() throws Exception;
  }

  final Admin admin;
  final Properties props;
  final String prefix;
  final String topic;
  final TopicPartition first;
  final ConfigResource resource;

  private AdminCalls(Properties props, String prefix) {
    this.props = props;
    this.prefix = prefix;
    this.admin = Admin.create(props);
    this.topic = prefix + "-topic";
    this.first = new TopicPartition(topic, 0);
    this.resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
  }

  public static void main(String[] args) throws Exception {
    Properties p = new Properties();
    p.put("bootstrap.servers", args[0]);
    p.put("request.timeout.ms", "20000");
    p.put("default.api.timeout.ms", "30000");
    AdminCalls calls = new AdminCalls(p, args[1]);
    try {
      calls.topics();
      calls.configs();
      calls.records();
      calls.groups();
      calls.replicas();
      calls.security();
      calls.rest();
      Class<?> more = null;
      try {
        more = Class.forName("NewAdminCalls");
      } catch (ClassNotFoundException e) {
        System.out.println("no newer calls");
      }
      if (more != null) {
        more.getDeclaredMethod("run", AdminCalls.class).invoke(null, calls);
      }
      calls.call("deleteTopics", () -> {
        calls.admin.deleteTopics(Collections.singletonList(calls.topic)).all().get();
        check("it is gone", !calls.admin.listTopics().names().get().contains(calls.topic));
      });
    } finally {
      calls.admin.close();
    }
    System.out.println("done");
  }

  void call(String name, Call call) {
    try {
      call.run();
    } catch (Exception e) {
      throw new IllegalStateException(name, e);
    }
    System.out.println("call " + name);
  }

  /** A call that must be refused with an error. */
  void refused(String name, Class<? extends Exception> with, Call call) {
    try {
      call.run();
    } catch (ExecutionException e) {
      if (!with.isInstance(e.getCause())) {
        throw new IllegalStateException(name, e);
      }
      System.out.println("refused " + name);
      return;
    } catch (Exception e) {
      throw new IllegalStateException(name, e);
    }
    throw new IllegalStateException(name + " was not refused");
  }

  static void check(String what, boolean ok) {
    if (!ok) {
      throw new IllegalStateException("not true: " + what);
    }
  }

  static void same(Object want, Object got) {
    if (!want.equals(got)) {
      throw new IllegalStateException("got " + got + ", want " + want);
    }
  }

  private void topics() {
    call("createTopics", () -> {
      NewTopic made = new NewTopic(topic, 2, (short) 1).configs(Collections.singletonMap("retention.ms", "12345678"));
      CreateTopicsResult r = admin.createTopics(Collections.singletonList(made));
      same(2, r.numPartitions(topic).get());
      same(1, r.replicationFactor(topic).get());
      same("12345678", r.config(topic).get().get("retention.ms").value());
      check("it has an id", r.topicId(topic).get() != null);
    });
    refused("createTopics again", TopicExistsException.class, () ->
        admin.createTopics(Collections.singletonList(new NewTopic(topic, Optional.empty(), Optional.empty()))).all().get());
    call("listTopics", () -> check("it is listed", admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get().contains(topic)));
    call("describeTopics", () -> {
      TopicDescription d = described();
      same(2, d.partitions().size());
      check("operations", d.authorizedOperations().contains(AclOperation.ALTER_CONFIGS));
      same(1, d.partitions().get(0).isr().size());
    });
    call("createPartitions", () -> {
      admin.createPartitions(Collections.singletonMap(topic, NewPartitions.increaseTo(3))).all().get();
      same(3, described().partitions().size());
    });
    refused("createPartitions of fewer", InvalidPartitionsException.class, () ->
        admin.createPartitions(Collections.singletonMap(topic, NewPartitions.increaseTo(1))).all().get());
    call("describeCluster", () -> {
      DescribeClusterResult r = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
      same(1, r.nodes().get().size());
      check("controller", r.controller().get().id() >= 0);
      check("cluster id", !r.clusterId().get().isEmpty());
      check("operations", r.authorizedOperations().get().contains(AclOperation.ALTER));
    });
  }

  /** The result's method has another name since 3.1, and the old one is gone in 4. */
  @SuppressWarnings("unchecked")
  private TopicDescription described() throws Exception {
    DescribeTopicsResult r = admin.describeTopics(Collections.singletonList(topic), new DescribeTopicsOptions().includeAuthorizedOperations(true));
    java.lang.reflect.Method all;
    try {
      all = r.getClass().getMethod("allTopicNames");
    } catch (NoSuchMethodException e) {
      all = r.getClass().getMethod("all");
    }
    return ((org.apache.kafka.common.KafkaFuture<Map<String, TopicDescription>>) all.invoke(r)).get().get(topic);
  }

  private String value(String key) throws Exception {
    return admin.describeConfigs(Collections.singletonList(resource)).all().get().get(resource).get(key).value();
  }

  void alter(ConfigResource of, AlterConfigOp.OpType type, String key, String value) throws Exception {
    Map<ConfigResource, Collection<AlterConfigOp>> ops = new HashMap<>();
    ops.put(of, Collections.singletonList(new AlterConfigOp(new ConfigEntry(key, value), type)));
    admin.incrementalAlterConfigs(ops).all().get();
  }

  private void configs() {
    call("incrementalAlterConfigs", () -> {
      alter(resource, AlterConfigOp.OpType.APPEND, "cleanup.policy", "compact");
      same("delete,compact", value("cleanup.policy"));
      alter(resource, AlterConfigOp.OpType.SUBTRACT, "cleanup.policy", "compact");
      same("delete", value("cleanup.policy"));
      alter(resource, AlterConfigOp.OpType.SET, "segment.ms", "7654321");
      same("7654321", value("segment.ms"));
      alter(resource, AlterConfigOp.OpType.DELETE, "segment.ms", null);
      same("604800000", value("segment.ms"));
    });
    refused("incrementalAlterConfigs with a wrong value", InvalidConfigurationException.class, () ->
        alter(resource, AlterConfigOp.OpType.SET, "segment.ms", "soon"));
    call("describeConfigs", () -> {
      DescribeConfigsOptions all = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
      ConfigEntry e = admin.describeConfigs(Collections.singletonList(resource), all).all().get().get(resource).get("retention.ms");
      same("12345678", e.value());
      same(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, e.source());
      same(ConfigEntry.ConfigType.LONG, e.type());
      check("documentation", !e.documentation().isEmpty());
      check("synonyms", !e.synonyms().isEmpty());
    });
    String id = null;
    try {
      id = Integer.toString(admin.describeCluster().controller().get().id());
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
    ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, id);
    ConfigResource brokers = new ConfigResource(ConfigResource.Type.BROKER, "");
    call("configs of brokers", () -> {
      alter(broker, AlterConfigOp.OpType.SET, "log.cleaner.backoff.ms", "14000");
      alter(brokers, AlterConfigOp.OpType.SET, "log.cleaner.backoff.ms", "13000");
      Config c = admin.describeConfigs(Collections.singletonList(broker)).all().get().get(broker);
      same("14000", c.get("log.cleaner.backoff.ms").value());
      alter(broker, AlterConfigOp.OpType.DELETE, "log.cleaner.backoff.ms", null);
      c = admin.describeConfigs(Collections.singletonList(brokers)).all().get().get(brokers);
      same("13000", c.get("log.cleaner.backoff.ms").value());
      alter(brokers, AlterConfigOp.OpType.DELETE, "log.cleaner.backoff.ms", null);
    });
  }

  private void records() {
    long began = System.currentTimeMillis() - 1_000;
    call("deleteRecords", () -> {
      Properties p = new Properties();
      p.putAll(props);
      p.put("acks", "all");
      p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
      p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
      try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
        for (int i = 0; i < 10; i++) {
          producer.send(new ProducerRecord<>(topic, 0, began + i, "k", "v")).get();
        }
      }
      DeleteRecordsResult r = admin.deleteRecords(Collections.singletonMap(first, RecordsToDelete.beforeOffset(4)));
      same(4L, r.lowWatermarks().get(first).get().lowWatermark());
    });
    call("listOffsets", () -> {
      same(4L, offset(OffsetSpec.earliest()));
      same(10L, offset(OffsetSpec.latest()));
      same(7L, offset(OffsetSpec.forTimestamp(began + 7)));
    });
  }

  long offset(OffsetSpec spec) throws Exception {
    return admin.listOffsets(Collections.singletonMap(first, spec)).partitionResult(first).get().offset();
  }

  private void groups() {
    String group = prefix + "-group";
    List<String> one = Collections.singletonList(group);
    call("alterConsumerGroupOffsets", () ->
        admin.alterConsumerGroupOffsets(group, Collections.singletonMap(first, new OffsetAndMetadata(5, "note"))).all().get());
    call("listConsumerGroupOffsets", () -> {
      OffsetAndMetadata o = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(first);
      same(5L, o.offset());
      same("note", o.metadata());
    });
    call("listConsumerGroups", () -> {
      boolean found = false;
      for (ConsumerGroupListing g : admin.listConsumerGroups().all().get()) {
        found |= g.groupId().equals(group);
      }
      check("it is listed", found);
    });
    call("listConsumerGroups by state", () -> {
      ListConsumerGroupsOptions stable = new ListConsumerGroupsOptions().inStates(Collections.singleton(org.apache.kafka.common.ConsumerGroupState.STABLE));
      for (ConsumerGroupListing g : admin.listConsumerGroups(stable).all().get()) {
        check("it is not stable", !g.groupId().equals(group));
      }
    });
    call("describeConsumerGroups", () -> {
      ConsumerGroupDescription d = admin.describeConsumerGroups(one, new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all().get().get(group);
      same("EMPTY", d.state().name());
      check("operations", d.authorizedOperations().contains(AclOperation.READ));
    });
    call("removeMembersFromConsumerGroup", () -> {
      Properties p = new Properties();
      p.putAll(props);
      p.put("group.id", group);
      p.put("group.instance.id", "i");
      p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
      p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
      try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p)) {
        consumer.subscribe(Collections.singletonList(topic));
        while (consumer.assignment().isEmpty()) {
          consumer.poll(java.time.Duration.ofMillis(100));
        }
        same(1, admin.describeConsumerGroups(one).all().get().get(group).members().size());
        admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(
            Collections.singletonList(new MemberToRemove("i")))).all().get();
        same(0, admin.describeConsumerGroups(one).all().get().get(group).members().size());
      }
    });
    call("deleteConsumerGroupOffsets", () -> {
      admin.deleteConsumerGroupOffsets(group, Collections.singleton(first)).all().get();
      check("no offset", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(first) == null);
    });
    call("deleteConsumerGroups", () -> {
      admin.alterConsumerGroupOffsets(group, Collections.singletonMap(first, new OffsetAndMetadata(5))).all().get();
      admin.deleteConsumerGroups(one).all().get();
    });
    refused("deleteConsumerGroups of none", GroupIdNotFoundException.class, () -> admin.deleteConsumerGroups(one).all().get());
  }

  private void replicas() {
    int[] node = new int[1];
    String[] dir = new String[1];
    call("describeLogDirs", () -> {
      node[0] = admin.describeCluster().controller().get().id();
      Map<String, LogDirDescription> dirs = admin.describeLogDirs(Collections.singletonList(node[0])).allDescriptions().get().get(node[0]);
      for (Map.Entry<String, LogDirDescription> e : dirs.entrySet()) {
        if (e.getValue().replicaInfos().containsKey(first)) {
          dir[0] = e.getKey();
          check("size", e.getValue().replicaInfos().get(first).size() > 0);
        }
      }
      check("it is somewhere", dir[0] != null);
    });
    TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, node[0]);
    call("describeReplicaLogDirs", () ->
        same(dir[0], admin.describeReplicaLogDirs(Collections.singletonList(replica)).all().get().get(replica).getCurrentReplicaLogDir()));
    call("alterReplicaLogDirs", () -> admin.alterReplicaLogDirs(Collections.singletonMap(replica, dir[0])).all().get());
    refused("alterReplicaLogDirs to nowhere", LogDirNotFoundException.class, () ->
        admin.alterReplicaLogDirs(Collections.singletonMap(replica, "/nowhere")).all().get());
    refused("electLeaders", ElectionNotNeededException.class, () -> {
      Optional<Throwable> e = admin.electLeaders(ElectionType.PREFERRED, Collections.singleton(first)).partitions().get().get(first);
      throw new ExecutionException(e.get());
    });
    call("electLeaders of all", () -> admin.electLeaders(ElectionType.PREFERRED, null).partitions().get());
    call("alterPartitionReassignments", () -> admin.alterPartitionReassignments(Collections.singletonMap(first,
        Optional.of(new NewPartitionReassignment(Collections.singletonList(node[0]))))).all().get());
    refused("alterPartitionReassignments cancelled", NoReassignmentInProgressException.class, () ->
        admin.alterPartitionReassignments(Collections.singletonMap(first, Optional.empty())).all().get());
    refused("alterPartitionReassignments to another", InvalidReplicaAssignmentException.class, () ->
        admin.alterPartitionReassignments(Collections.singletonMap(first,
            Optional.of(new NewPartitionReassignment(Arrays.asList(node[0], node[0] + 70))))).all().get());
    call("listPartitionReassignments", () -> check("none", admin.listPartitionReassignments().reassignments().get().isEmpty()));
  }

  private void security() {
    AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
        new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
    refused("describeAcls", SecurityDisabledException.class, () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
    refused("createAcls", SecurityDisabledException.class, () -> admin.createAcls(Collections.singletonList(acl)).all().get());
    refused("deleteAcls", SecurityDisabledException.class, () -> admin.deleteAcls(Collections.singletonList(AclBindingFilter.ANY)).all().get());
    refused("describeDelegationToken", UnsupportedByAuthenticationException.class, () -> admin.describeDelegationToken().delegationTokens().get());
    byte[] hmac = "none".getBytes(StandardCharsets.UTF_8);
    refused("renewDelegationToken", UnsupportedByAuthenticationException.class, () -> admin.renewDelegationToken(hmac).expiryTimestamp().get());
    refused("expireDelegationToken", UnsupportedByAuthenticationException.class, () -> admin.expireDelegationToken(hmac).expiryTimestamp().get());
    refused("createDelegationToken", UnsupportedByAuthenticationException.class, () -> admin.createDelegationToken().delegationToken().get());
    String user = prefix + "-user";
    call("alterUserScramCredentials", () -> admin.alterUserScramCredentials(Collections.singletonList(new UserScramCredentialUpsertion(user,
        new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret".getBytes(StandardCharsets.UTF_8)))).all().get());
    call("describeUserScramCredentials", () -> {
      UserScramCredentialsDescription d = admin.describeUserScramCredentials(Collections.singletonList(user)).all().get().get(user);
      same(4096, d.credentialInfos().get(0).iterations());
      admin.alterUserScramCredentials(Collections.singletonList(new UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256))).all().get();
    });
    refused("describeUserScramCredentials of none", ResourceNotFoundException.class, () ->
        admin.describeUserScramCredentials(Collections.singletonList(user)).description(user).get());
    ClientQuotaEntity entity = new ClientQuotaEntity(Collections.singletonMap(ClientQuotaEntity.USER, user));
    call("alterClientQuotas", () -> quota(entity, 1e6));
    call("describeClientQuotas", () -> {
      ClientQuotaFilter filter = ClientQuotaFilter.contains(Collections.singletonList(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, user)));
      same(1e6, admin.describeClientQuotas(filter).entities().get().get(entity).get("producer_byte_rate"));
      quota(entity, null);
      check("none left", admin.describeClientQuotas(filter).entities().get().isEmpty());
    });
  }

  private void quota(ClientQuotaEntity entity, Double value) throws Exception {
    admin.alterClientQuotas(Collections.singletonList(new ClientQuotaAlteration(entity,
        Collections.singletonList(new ClientQuotaAlteration.Op("producer_byte_rate", value))))).all().get();
  }

  private void rest() {
    refused("unregisterBroker", ApiException.class, () -> admin.unregisterBroker(99).all().get());
    call("describeFeatures", () -> check("features", admin.describeFeatures().featureMetadata().get() != null));
    call("metrics", () -> check("metrics", !admin.metrics().isEmpty()));
  }
}
