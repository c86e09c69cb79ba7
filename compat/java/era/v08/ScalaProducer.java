import java.io.BufferedWriter;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import kafka.javaapi.producer.Producer;
import kafka.producer.KeyedMessage;
import kafka.producer.Partitioner;
import kafka.producer.ProducerConfig;
import kafka.utils.VerifiableProperties;

/**
 * The Scala producer of 0.8, for long the only one. Arguments are those of "Matrix produce"; it is told no offsets, so
 * OUT has failures only. The first message of a topic goes alone, the rest in one call.
 */
public final class ScalaProducer {
  private ScalaProducer() {}

  /** The partition key is the partition. */
  public static final class ByKey implements Partitioner {
    public ByKey(VerifiableProperties unused) {}

    @Override
    public int partition(Object key, int partitions) {
      return (Integer) key;
    }
  }

  public static void main(String[] args) throws Exception {
    List<String[]> rows = Lines.rows(args[3]);
    try (BufferedWriter w = Files.newBufferedWriter(Paths.get(args[4]))) {
      for (String[] job : Lines.rows(args[2])) {
        try {
          send(args[1], job[0], job[1], rows);
        } catch (Exception e) {
          w.write(Lines.failure(job[0], e));
        }
      }
    }
    System.exit(0);
  }

  private static void send(String broker, String topic, String codec, List<String[]> rows) {
    Properties p = new Properties();
    p.put("metadata.broker.list", broker);
    p.put("compression.codec", codec);
    p.put("request.required.acks", "-1");
    p.put("partitioner.class", ByKey.class.getName());
    p.put("message.send.max.retries", "0");
    List<KeyedMessage<byte[], byte[]>> messages = new ArrayList<>();
    for (String[] r : rows) {
      messages.add(new KeyedMessage<>(topic, Lines.decode(r[2]), Integer.valueOf(r[0]), Lines.decode(r[3])));
    }
    Producer<byte[], byte[]> producer = new Producer<>(new ProducerConfig(p));
    producer.send(messages.get(0));
    producer.send(messages.subList(1, messages.size()));
    producer.close();
  }
}
