import java.io.Writer;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reading with assign(), as the consumers from 0.9 on do it. */
final class Assigned {
  private static final int DEFAULT_BYTES = 1 << 20;
  private static final long QUIET_MS = 10_000; // without a record

  private Assigned() {}

  static void consume(String broker, List<String> topics, Writer w, long time) throws Exception {
    KafkaConsumer<byte[], byte[]> consumer = open(broker, DEFAULT_BYTES);
    for (String topic : topics) {
      try {
        read(consumer, topic, w, time);
      } catch (Exception e) {
        w.write(Lines.failure(topic, e));
        consumer.close();
        consumer = open(broker, DEFAULT_BYTES);
      }
    }
    consumer.close();
  }

  /** Reads one partition from an offset to an end with fetches of so many bytes. */
  static void slice(String broker, TopicPartition tp, long from, long end, int bytes, Writer w) throws Exception {
    KafkaConsumer<byte[], byte[]> consumer = open(broker, bytes);
    try {
      consumer.assign(Collections.singletonList(tp));
      consumer.seek(tp, from);
      drain(consumer, Collections.singletonMap(tp, end), w);
    } finally {
      consumer.close();
    }
  }

  private static KafkaConsumer<byte[], byte[]> open(String broker, int bytes) {
    Properties p = new Properties();
    p.put("bootstrap.servers", broker);
    p.put("enable.auto.commit", "false");
    p.put("auto.offset.reset", "none");
    p.put("max.partition.fetch.bytes", "" + bytes);
    p.put("request.timeout.ms", "10000");
    p.put("default.api.timeout.ms", "20000");
    p.put("session.timeout.ms", "6000"); // the oldest want it below the request's
    p.put("heartbeat.interval.ms", "2000");
    p.put("fetch.max.wait.ms", "50"); // the last fetch of every topic waits that long
    return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  private static void read(KafkaConsumer<byte[], byte[]> consumer, String topic, Writer w, long time) throws Exception {
    List<PartitionInfo> found = consumer.partitionsFor(topic); // for an unknown topic null, from 2.8 on none
    if (found == null || found.isEmpty()) {
      throw new IllegalStateException("no partitions known");
    }
    List<TopicPartition> parts = found.stream()
        .map(i -> new TopicPartition(topic, i.partition()))
        .sorted(Comparator.comparingInt(TopicPartition::partition)).collect(Collectors.toList());
    consumer.assign(parts);
    Map<TopicPartition, Long> end = Era.toBeginning(consumer, parts, w, time);
    drain(consumer, end, w);
  }

  private static void drain(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> end, Writer w) throws Exception {
    long heard = System.nanoTime();
    while (end.keySet().stream().anyMatch(tp -> consumer.position(tp) < end.get(tp))) {
      if (System.nanoTime() - heard > QUIET_MS * 1_000_000) {
        throw new IllegalStateException("no record for " + QUIET_MS + " ms before the end " + end);
      }
      for (ConsumerRecord<byte[], byte[]> r : poll(consumer)) {
        w.write(Era.line(r));
        heard = System.nanoTime();
      }
    }
  }

  /** poll(Duration) is there from 2.0 on, poll(long) until 3.9. */
  @SuppressWarnings("unchecked")
  private static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
    Method timed;
    Object wait = Duration.ofMillis(500);
    try {
      timed = KafkaConsumer.class.getMethod("poll", Duration.class);
    } catch (NoSuchMethodException e) {
      timed = KafkaConsumer.class.getMethod("poll", long.class);
      wait = 500L;
    }
    try {
      return (ConsumerRecords<byte[], byte[]>) timed.invoke(consumer, wait);
    } catch (java.lang.reflect.InvocationTargetException e) {
      throw (Exception) e.getCause();
    }
  }
}
