import java.io.Writer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** 0.11 to 4.4: timestamps and headers. */
final class Era {
  private Era() {}

  static ProducerRecord<byte[], byte[]> record(String topic, String[] row) {
    List<Header> headers = new ArrayList<>();
    for (String h : row[4].isEmpty() ? new String[0] : row[4].split(",")) {
      int eq = h.indexOf('=');
      headers.add(new RecordHeader(h.substring(0, eq), Lines.decode(h.substring(eq + 1))));
    }
    return new ProducerRecord<>(topic, Integer.valueOf(row[0]), Long.valueOf(row[1]), Lines.decode(row[2]), Lines.decode(row[3]), headers);
  }

  static void consume(String broker, List<String> topics, Writer w, long time) throws Exception {
    Assigned.consume(broker, topics, w, time);
  }

  static void slice(String broker, String topic, int partition, long from, long end, int bytes, Writer w) throws Exception {
    Assigned.slice(broker, new TopicPartition(topic, partition), from, end, bytes, w);
  }

  static Map<TopicPartition, Long> toBeginning(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> parts, Writer w, long time) throws Exception {
    return Spans.toBeginning(consumer, parts, w, time);
  }

  static String line(ConsumerRecord<byte[], byte[]> r) throws Exception {
    StringBuilder h = new StringBuilder();
    for (Header header : r.headers()) {
      h.append(h.length() == 0 ? "" : ",").append(header.key()).append('=').append(Lines.encode(header.value()));
    }
    return Lines.record(r.topic(), r.partition(), r.offset(), r.timestamp(), r.key(), r.value(), h.toString());
  }
}
