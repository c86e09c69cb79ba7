import java.io.Writer;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;

/** What ListOffsets tells, as consumers from 0.10.1 on ask it. */
final class Spans {
  private Spans() {}

  /** Writes the lines with "?", goes to the beginning and returns the ends. */
  static Map<TopicPartition, Long> toBeginning(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> parts, Writer w, long time) throws Exception {
    consumer.seekToBeginning(parts);
    Map<TopicPartition, Long> begin = consumer.beginningOffsets(parts);
    Map<TopicPartition, Long> end = consumer.endOffsets(parts);
    Map<TopicPartition, OffsetAndTimestamp> at = consumer.offsetsForTimes(parts.stream().collect(Collectors.toMap(tp -> tp, tp -> time)));
    for (TopicPartition tp : parts) {
      w.write(Lines.span(tp.topic(), tp.partition(), begin.get(tp), end.get(tp), at.get(tp) == null ? "-1" : "" + at.get(tp).offset()));
    }
    return end;
  }
}
