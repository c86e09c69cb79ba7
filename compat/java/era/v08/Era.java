import java.io.Writer;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.common.ErrorMapping;
import kafka.common.TopicAndPartition;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.OffsetResponse;
import kafka.javaapi.PartitionMetadata;
import kafka.javaapi.TopicMetadata;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.message.MessageAndOffset;
import org.apache.kafka.clients.producer.ProducerRecord;

/** 0.8: the new producer, and SimpleConsumer, which speaks Fetch, Offsets and Metadata of version 0. */
final class Era {
  private static final String ID = "matrix-0.8";
  private static final int FETCH_BYTES = 2 << 20;

  private Era() {}

  static ProducerRecord<byte[], byte[]> record(String topic, String[] row) {
    return new ProducerRecord<>(topic, Integer.valueOf(row[0]), Lines.decode(row[2]), Lines.decode(row[3]));
  }

  static void consume(String broker, List<String> topics, Writer w, long time) throws Exception {
    SimpleConsumer consumer = connect(broker);
    for (String topic : topics) {
      try {
        List<PartitionMetadata> parts = partitions(consumer, topic);
        for (PartitionMetadata p : parts) {
          long begin = offset(consumer, topic, p.partitionId(), kafka.api.OffsetRequest.EarliestTime());
          long end = offset(consumer, topic, p.partitionId(), kafka.api.OffsetRequest.LatestTime());
          w.write(Lines.span(topic, p.partitionId(), begin, end, "-"));
          read(consumer, topic, p.partitionId(), begin, end, FETCH_BYTES, w);
        }
      } catch (Throwable e) {
        w.write(Lines.failure(topic, e));
      }
    }
    consumer.close();
  }

  static void slice(String broker, String topic, int partition, long from, long end, int bytes, Writer w) throws Throwable {
    SimpleConsumer consumer = connect(broker);
    try {
      read(consumer, topic, partition, from, end, bytes, w);
    } finally {
      consumer.close();
    }
  }

  private static SimpleConsumer connect(String broker) {
    String[] at = broker.split(":");
    return new SimpleConsumer(at[0], Integer.parseInt(at[1]), 30_000, 64 << 10, ID);
  }

  private static List<PartitionMetadata> partitions(SimpleConsumer consumer, String topic) throws Throwable {
    TopicMetadata found = consumer.send(new TopicMetadataRequest(Collections.singletonList(topic))).topicsMetadata().get(0);
    ErrorMapping.maybeThrowException(found.errorCode());
    for (PartitionMetadata p : found.partitionsMetadata()) {
      ErrorMapping.maybeThrowException(p.errorCode());
    }
    found.partitionsMetadata().stream().filter(p -> p.leader() == null).forEach(p -> {
      throw new IllegalStateException("partition " + p.partitionId() + " has no leader");
    });
    return found.partitionsMetadata();
  }

  private static long offset(SimpleConsumer consumer, String topic, int partition, long time) throws Throwable {
    Map<TopicAndPartition, PartitionOffsetRequestInfo> ask =
        Collections.singletonMap(new TopicAndPartition(topic, partition), new PartitionOffsetRequestInfo(time, 1));
    OffsetResponse answer = consumer.getOffsetsBefore(new kafka.javaapi.OffsetRequest(ask, kafka.api.OffsetRequest.CurrentVersion(), ID));
    ErrorMapping.maybeThrowException(answer.errorCode(topic, partition));
    return answer.offsets(topic, partition)[0];
  }

  private static void read(SimpleConsumer consumer, String topic, int partition, long from, long end, int bytes, Writer w) throws Throwable {
    long next = from;
    for (int empty = 0; next < end; ) {
      FetchResponse answer = consumer.fetch(new FetchRequestBuilder().clientId(ID).addFetch(topic, partition, next, bytes).maxWait(50).minBytes(1).build());
      short code = answer.errorCode(topic, partition);
      if (code != 0) {
        throw new IllegalStateException("fetch answered error " + code, ErrorMapping.exceptionFor(code));
      }
      long before = next;
      for (MessageAndOffset m : answer.messageSet(topic, partition)) {
        if (m.offset() < next) {
          continue; // a compressed set begins before the offset that was asked for
        }
        w.write(Lines.record(topic, partition, m.offset(), -1, bytes(m.message().key()), bytes(m.message().payload()), ""));
        next = m.nextOffset();
      }
      empty = next == before ? empty + 1 : 0;
      if (empty == 20) {
        int size = answer.messageSet(topic, partition).sizeInBytes();
        throw new IllegalStateException("20 fetches at " + next + " of " + end + " brought no message, the last one " + size + " bytes");
      }
    }
  }

  private static byte[] bytes(ByteBuffer b) {
    if (b == null) {
      return null;
    }
    byte[] out = new byte[b.remaining()];
    b.get(out);
    return out;
  }
}
