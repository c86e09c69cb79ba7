import java.io.PrintStream;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One member of a group, for every version of kafka-clients from 0.9 on. GroupMember BROKER GROUP TOPIC INSTANCE
 * ASSIGNOR; "-" for the last two is none, and ASSIGNOR may be KIP-848 for the protocol of that. It prints what happens,
 * one line each: "assigned P,P", "revoked P,P", "record P OFFSET VALUE" after a record is processed, "committed P OFFSET"
 * after a commit is answered, "failed TEXT" when one is not. It leaves the group and ends when standard input does.
 */
public final class GroupMember {
  private static final PrintStream OUT = new PrintStream(System.out, true);
  private static volatile boolean stopped;

  public static void main(String[] args) throws Exception {
    Properties p = new Properties();
    p.put("bootstrap.servers", args[0]);
    p.put("group.id", args[1]);
    p.put("enable.auto.commit", "false");
    p.put("auto.offset.reset", "earliest");
    p.put("session.timeout.ms", args[3].equals("-") ? "6000" : "30000"); // a static member has time to come back
    p.put("heartbeat.interval.ms", "500");
    p.put("fetch.max.wait.ms", "200");
    p.put("retry.backoff.ms", "50");
    p.put("key.deserializer", StringDeserializer.class.getName());
    p.put("value.deserializer", StringDeserializer.class.getName());
    if (!args[3].equals("-")) {
      p.put("group.instance.id", args[3]);
    }
    if (args[4].equals("KIP-848")) {
      p.put("group.protocol", "consumer");
      p.remove("session.timeout.ms");
      p.remove("heartbeat.interval.ms");
    } else if (!args[4].equals("-")) {
      p.put("partition.assignment.strategy", args[4]);
    }
    KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(p);
    Thread input = new Thread(() -> waitForEnd(consumer));
    input.setDaemon(true);
    input.start();
    try {
      consumer.subscribe(Arrays.asList(args[2]), new Listener());
      consume(consumer);
    } finally {
      consumer.close();
    }
    System.exit(0);
  }

  private static void waitForEnd(KafkaConsumer<String, String> consumer) {
    try {
      while (System.in.read() >= 0) {
        // nothing is said
      }
    } catch (java.io.IOException e) {
      OUT.println("failed " + e);
    }
    stopped = true;
    consumer.wakeup();
  }

  private static void consume(KafkaConsumer<String, String> consumer) throws Exception {
    Poll poll = new Poll(consumer);
    while (!stopped) {
      Map<TopicPartition, OffsetAndMetadata> done = new HashMap<TopicPartition, OffsetAndMetadata>();
      try {
        for (ConsumerRecord<String, String> r : poll.once()) {
          OUT.println("record " + r.partition() + " " + r.offset() + " " + r.value());
          done.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
        }
        if (!done.isEmpty()) {
          consumer.commitSync(done);
          for (Map.Entry<TopicPartition, OffsetAndMetadata> e : done.entrySet()) {
            OUT.println("committed " + e.getKey().partition() + " " + e.getValue().offset());
          }
        }
      } catch (WakeupException e) {
        // the end
      } catch (org.apache.kafka.common.KafkaException e) {
        OUT.println("failed " + e);
        if (e.getClass().getSimpleName().startsWith("Fenced")) {
          return;
        }
      }
    }
  }

  /** poll(long) until 1.x, poll(Duration) from 2.0; the first is gone in 4.0. */
  private static final class Poll {
    private final KafkaConsumer<String, String> consumer;
    private final Method method;
    private final Object timeout;

    Poll(KafkaConsumer<String, String> consumer) throws Exception {
      this.consumer = consumer;
      Method m;
      Object t;
      try {
        m = KafkaConsumer.class.getMethod("poll", java.time.Duration.class);
        t = java.time.Duration.ofMillis(200);
      } catch (NoSuchMethodException e) {
        m = KafkaConsumer.class.getMethod("poll", long.class);
        t = 200L;
      }
      method = m;
      timeout = t;
    }

    @SuppressWarnings("unchecked")
    ConsumerRecords<String, String> once() throws Exception {
      try {
        return (ConsumerRecords<String, String>) method.invoke(consumer, timeout);
      } catch (java.lang.reflect.InvocationTargetException e) {
        if (e.getCause() instanceof RuntimeException) {
          throw (RuntimeException) e.getCause();
        }
        throw e;
      }
    }
  }

  private static final class Listener implements ConsumerRebalanceListener {
    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
      OUT.println("revoked " + numbers(partitions));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
      OUT.println("assigned " + numbers(partitions));
    }

    private static String numbers(Collection<TopicPartition> partitions) {
      StringBuilder b = new StringBuilder();
      for (TopicPartition p : partitions) {
        b.append(b.length() > 0 ? "," : "").append(p.partition());
      }
      return b.toString();
    }
  }
}
