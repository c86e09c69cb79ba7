import java.io.Writer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** 0.9: neither timestamps nor headers, and no question for offsets but by going there. */
final class Era {
  private Era() {}

  static ProducerRecord<byte[], byte[]> record(String topic, String[] row) {
    return new ProducerRecord<>(topic, Integer.valueOf(row[0]), Lines.decode(row[2]), Lines.decode(row[3]));
  }

  static void consume(String broker, List<String> topics, Writer w, long time) throws Exception {
    Assigned.consume(broker, topics, w, time);
  }

  static void slice(String broker, String topic, int partition, long from, long end, int bytes, Writer w) throws Exception {
    Assigned.slice(broker, new TopicPartition(topic, partition), from, end, bytes, w);
  }

  static Map<TopicPartition, Long> toBeginning(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> parts, Writer w, long time) throws Exception {
    TopicPartition[] all = parts.toArray(new TopicPartition[0]);
    Map<TopicPartition, Long> end = new HashMap<>();
    consumer.seekToEnd(all);
    for (TopicPartition tp : parts) {
      end.put(tp, consumer.position(tp));
    }
    consumer.seekToBeginning(all);
    for (TopicPartition tp : parts) {
      w.write(Lines.span(tp.topic(), tp.partition(), consumer.position(tp), end.get(tp), "-"));
    }
    return end;
  }

  static String line(ConsumerRecord<byte[], byte[]> r) throws Exception {
    return Lines.record(r.topic(), r.partition(), r.offset(), -1, r.key(), r.value(), "");
  }
}
