import java.io.BufferedWriter;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java side of the client matrix, for every version of kafka-clients. Files are tab-separated; a field is "-" for
 * null or "=" and base64, headers are key=field joined by commas. Batches many topics into one JVM.
 *
 * <p>produce BROKER JOBS RECORDS OUT: for each "topic codec" line of JOBS, sends all RECORDS (partition, timestamp,
 * key, value, headers) and writes topic, partition, offset for each in order.
 *
 * <p>consume BROKER TOPICS OUT TIME: reads each topic with assign() from its beginning to its end and writes topic,
 * partition, offset, timestamp, key, value, headers; values over 256 bytes as "#length:sha256". Lines that start with
 * "?" carry topic, partition, beginning, end and the first offset at or after TIME.
 */
public final class Matrix {
  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "produce": produce(args[1], args[2], args[3], args[4]); break;
      case "consume": consume(args[1], args[2], args[3], Long.parseLong(args[4])); break;
      default: throw new IllegalArgumentException(args[0]);
    }
  }

  private static void produce(String broker, String jobs, String records, String out) throws Exception {
    List<String[]> rows = Files.readAllLines(Paths.get(records)).stream().map(l -> l.split("\t", -1)).collect(Collectors.toList());
    try (BufferedWriter w = Files.newBufferedWriter(Paths.get(out))) {
      for (String job : Files.readAllLines(Paths.get(jobs))) {
        String[] jc = job.split("\t");
        Properties p = new Properties();
        p.put("bootstrap.servers", broker);
        p.put("compression.type", jc[1]);
        p.put("acks", "all");
        p.put("delivery.timeout.ms", "30000");
        p.put("request.timeout.ms", "10000");
        p.put("linger.ms", "5");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
          List<Future<RecordMetadata>> acks = new ArrayList<>();
          for (String[] r : rows) {
            acks.add(producer.send(new ProducerRecord<>(jc[0], Integer.valueOf(r[0]), Long.valueOf(r[1]), decode(r[2]), decode(r[3]), headers(r[4]))));
          }
          for (Future<RecordMetadata> ack : acks) {
            RecordMetadata m = ack.get();
            w.write(m.topic() + "\t" + m.partition() + "\t" + m.offset() + "\n");
          }
        }
      }
    }
  }

  private static void consume(String broker, String topics, String out, long time) throws Exception {
    Properties p = new Properties();
    p.put("bootstrap.servers", broker);
    p.put("enable.auto.commit", "false");
    p.put("request.timeout.ms", "10000");
    p.put("default.api.timeout.ms", "20000");
    p.put("fetch.max.wait.ms", "50"); // the last fetch of every topic waits that long
    try (BufferedWriter w = Files.newBufferedWriter(Paths.get(out));
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      for (String topic : Files.readAllLines(Paths.get(topics))) {
        List<TopicPartition> parts = consumer.partitionsFor(topic).stream()
            .map(i -> new TopicPartition(topic, i.partition()))
            .sorted(Comparator.comparingInt(TopicPartition::partition)).collect(Collectors.toList());
        consumer.assign(parts);
        consumer.seekToBeginning(parts);
        Map<TopicPartition, Long> begin = consumer.beginningOffsets(parts);
        Map<TopicPartition, Long> end = consumer.endOffsets(parts);
        var at = consumer.offsetsForTimes(parts.stream().collect(Collectors.toMap(tp -> tp, tp -> time)));
        for (TopicPartition tp : parts) {
          w.write("?\t" + topic + "\t" + tp.partition() + "\t" + begin.get(tp) + "\t" + end.get(tp) + "\t"
              + (at.get(tp) == null ? -1 : at.get(tp).offset()) + "\n");
        }
        long deadline = System.currentTimeMillis() + 30_000;
        while (parts.stream().anyMatch(tp -> consumer.position(tp) < end.get(tp))) {
          if (System.currentTimeMillis() > deadline) {
            throw new IllegalStateException(topic + ": not read to its end " + end + " within 30 s");
          }
          for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(500))) {
            w.write(line(r));
          }
        }
      }
    }
  }

  private static String line(ConsumerRecord<byte[], byte[]> r) throws Exception {
    StringBuilder h = new StringBuilder();
    for (Header header : r.headers()) {
      h.append(h.length() == 0 ? "" : ",").append(header.key()).append('=').append(encode(header.value()));
    }
    return r.topic() + "\t" + r.partition() + "\t" + r.offset() + "\t" + r.timestamp() + "\t" + encode(r.key()) + "\t" + encode(r.value()) + "\t" + h + "\n";
  }

  private static String encode(byte[] b) throws Exception {
    if (b == null) {
      return "-";
    }
    if (b.length <= 256) {
      return "=" + Base64.getEncoder().encodeToString(b);
    }
    StringBuilder hex = new StringBuilder("#" + b.length + ":");
    for (byte x : MessageDigest.getInstance("SHA-256").digest(b)) {
      hex.append(String.format("%02x", x));
    }
    return hex.toString();
  }

  private static byte[] decode(String field) {
    return field.equals("-") ? null : Base64.getDecoder().decode(field.substring(1));
  }

  private static List<Header> headers(String field) {
    List<Header> out = new ArrayList<>();
    if (!field.isEmpty()) {
      for (String h : field.split(",")) {
        int eq = h.indexOf('=');
        out.add(new RecordHeader(h.substring(0, eq), decode(h.substring(eq + 1))));
      }
    }
    return out;
  }
}
