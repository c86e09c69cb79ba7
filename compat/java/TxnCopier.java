import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies a topic in transactions, for every version of kafka-clients from 0.11 on. TxnCopier BROKER INPUT OUTPUT GROUP
 * TRANSACTIONAL-ID. Offsets are committed in the transactions; every fifth or so is aborted and done again. It prints
 * "committed N" and "aborted N", and ends when standard input does, or with "failed TEXT" at the first error that the
 * client does not deal with by itself.
 */
public final class TxnCopier {
  private static final PrintStream OUT = new PrintStream(System.out, true);
  private static volatile boolean stopped;

  public static void main(String[] args) throws Exception {
    Thread input = new Thread(TxnCopier::waitForEnd);
    input.setDaemon(true);
    input.start();
    KafkaProducer<String, String> producer = new KafkaProducer<String, String>(producerProperties(args));
    KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(consumerProperties(args));
    try {
      producer.initTransactions();
      OUT.println("ready");
      consumer.subscribe(Arrays.asList(args[1]));
      Calls calls = new Calls(consumer, producer, args[3]);
      Random random = new Random();
      while (!stopped) {
        ConsumerRecords<String, String> records = calls.poll();
        while (!records.isEmpty() && !copy(producer, calls, records, args[2], random.nextInt(5) == 0)) {
          OUT.println("aborted " + records.count());
        }
      }
    } catch (Throwable e) {
      OUT.println("failed " + e);
      Runtime.getRuntime().halt(4);
    }
    System.exit(0);
  }

  private static boolean copy(KafkaProducer<String, String> producer, Calls calls, ConsumerRecords<String, String> records, String output,
      boolean abort) throws Exception {
    producer.beginTransaction();
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<TopicPartition, OffsetAndMetadata>();
    for (ConsumerRecord<String, String> r : records) {
      producer.send(new ProducerRecord<String, String>(output, r.partition(), r.key(), r.value()));
      offsets.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
    }
    calls.sendOffsets(offsets);
    if (abort) {
      producer.abortTransaction();
      return false;
    }
    producer.commitTransaction();
    OUT.println("committed " + records.count());
    return true;
  }

  private static Properties producerProperties(String[] args) {
    Properties p = new Properties();
    p.put("bootstrap.servers", args[0]);
    p.put("transactional.id", args[4]);
    p.put("transaction.timeout.ms", "20000");
    p.put("retry.backoff.ms", "50");
    p.put("key.serializer", StringSerializer.class.getName());
    p.put("value.serializer", StringSerializer.class.getName());
    return p;
  }

  private static Properties consumerProperties(String[] args) {
    Properties p = new Properties();
    p.put("bootstrap.servers", args[0]);
    p.put("group.id", args[3]);
    p.put("enable.auto.commit", "false");
    p.put("isolation.level", "read_committed");
    p.put("auto.offset.reset", "earliest");
    p.put("session.timeout.ms", "2000");
    p.put("heartbeat.interval.ms", "300");
    p.put("max.poll.records", "20");
    p.put("fetch.max.wait.ms", "100");
    p.put("retry.backoff.ms", "50");
    p.put("key.deserializer", StringDeserializer.class.getName());
    p.put("value.deserializer", StringDeserializer.class.getName());
    return p;
  }

  private static void waitForEnd() {
    try {
      while (System.in.read() >= 0) {
        // nothing is said
      }
    } catch (java.io.IOException e) {
      OUT.println("failed " + e);
    }
    stopped = true;
  }

  /** What the versions call by different names: poll(Duration) is from 2.0, offsets with the group's metadata from 2.5. */
  private static final class Calls {
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String group;
    private final Method poll;
    private final Object timeout;
    private Method metadata;
    private final Method send;

    Calls(KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer, String group) throws Exception {
      this.consumer = consumer;
      this.producer = producer;
      this.group = group;
      Method m;
      Object t;
      try {
        m = KafkaConsumer.class.getMethod("poll", java.time.Duration.class);
        t = java.time.Duration.ofMillis(200);
      } catch (NoSuchMethodException e) {
        m = KafkaConsumer.class.getMethod("poll", long.class);
        t = 200L;
      }
      poll = m;
      timeout = t;
      try {
        metadata = KafkaConsumer.class.getMethod("groupMetadata");
        m = KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, metadata.getReturnType());
      } catch (NoSuchMethodException e) {
        m = KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, String.class);
      }
      send = m;
    }

    @SuppressWarnings("unchecked")
    ConsumerRecords<String, String> poll() throws Exception {
      return (ConsumerRecords<String, String>) call(poll, consumer, timeout);
    }

    void sendOffsets(Map<TopicPartition, OffsetAndMetadata> offsets) throws Exception {
      call(send, producer, offsets, metadata == null ? group : call(metadata, consumer));
    }

    private static Object call(Method method, Object on, Object... args) throws Exception {
      try {
        return method.invoke(on, args);
      } catch (InvocationTargetException e) {
        if (e.getCause() instanceof Exception) {
          throw (Exception) e.getCause();
        }
        throw e;
      }
    }
  }
}
