import java.util.Properties;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer of 0.8 that sends on while its broker comes and goes: Steady scala|new BROKER TOPIC N sends the numbers 0 to
 * N-1 to partition 0, one at a time with acks of all and retries, and prints each number that was acknowledged. A number
 * that fails in spite of the retries is sent again.
 */
public final class Steady {
  private Steady() {}

  private interface Sender {
    void send(byte[] value) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    Sender sender = args[0].equals("scala") ? scala(args[1], args[2]) : modern(args[1], args[2]);
    for (int i = 0, n = Integer.parseInt(args[3]); i < n; ) {
      try {
        sender.send(("" + i).getBytes("UTF-8"));
        System.out.println(i++);
      } catch (Exception e) {
        System.err.println(i + ": " + e);
      }
    }
    System.exit(0);
  }

  private static Sender scala(String broker, String topic) {
    Properties p = new Properties();
    p.put("metadata.broker.list", broker);
    p.put("request.required.acks", "-1");
    p.put("partitioner.class", ScalaProducer.ByKey.class.getName());
    p.put("message.send.max.retries", "50");
    p.put("retry.backoff.ms", "100");
    kafka.javaapi.producer.Producer<byte[], byte[]> producer = new kafka.javaapi.producer.Producer<>(new ProducerConfig(p));
    return value -> producer.send(new KeyedMessage<byte[], byte[]>(topic, null, Integer.valueOf(0), value));
  }

  private static Sender modern(String broker, String topic) {
    Properties p = new Properties();
    p.put("bootstrap.servers", broker);
    p.put("acks", "all");
    p.put("retries", "50");
    p.put("retry.backoff.ms", "100");
    KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    return value -> producer.send(new ProducerRecord<byte[], byte[]>(topic, 0, null, value)).get();
  }
}
