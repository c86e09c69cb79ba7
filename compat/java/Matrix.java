import java.io.BufferedWriter;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java side of the client matrix, for every Kafka version from 0.8.2.2 on: what a version's API cannot say in the
 * words of the others is in the Era class that is compiled with this one. Files are as Lines describes them. One JVM
 * serves many topics.
 *
 * <p>produce BROKER JOBS RECORDS OUT: for each "topic codec modern" line of JOBS, sends all RECORDS, without headers and
 * idempotence unless modern is "true", and writes topic, partition, offset for each in order. A topic that fails writes
 * "!", topic, error.
 *
 * <p>consume BROKER TOPICS OUT TIME: reads each topic from its beginning to its end and writes its records. Lines that
 * start with "?" carry topic, partition, beginning, end and the first offset at or after TIME, "-" where the version
 * cannot ask for that; a topic that fails writes "!", topic, error after what was read of it.
 *
 * <p>slices BROKER LIST OUT: for each line of LIST (topic, partition, offset, end, bytes of a fetch) reads that partition
 * from offset up to end; a slice that fails writes "!", topic, error after what was read of it.
 */
public final class Matrix {
  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "produce": produce(args[1], args[2], args[3], args[4]); break;
      case "consume":
        try (BufferedWriter w = Files.newBufferedWriter(Paths.get(args[3]))) {
          Era.consume(args[1], Files.readAllLines(Paths.get(args[2])), w, Long.parseLong(args[4]));
        }
        break;
      case "slices":
        try (BufferedWriter w = Files.newBufferedWriter(Paths.get(args[3]))) {
          slices(args[1], args[2], w);
        }
        break;
      default: throw new IllegalArgumentException(args[0]);
    }
    System.exit(0); // the oldest clients leave threads behind
  }

  private static void slices(String broker, String list, BufferedWriter w) throws Exception {
    for (String[] s : Lines.rows(list)) {
      try {
        Era.slice(broker, s[0], Integer.parseInt(s[1]), Long.parseLong(s[2]), Long.parseLong(s[3]), Integer.parseInt(s[4]), w);
      } catch (Throwable e) {
        w.write(Lines.failure(s[0], e));
      }
    }
  }

  private static void produce(String broker, String jobs, String records, String out) throws Exception {
    try (BufferedWriter w = Files.newBufferedWriter(Paths.get(out))) {
      for (String[] job : Lines.rows(jobs)) {
        Properties p = new Properties();
        p.put("bootstrap.servers", broker);
        p.put("compression.type", job[1]);
        p.put("acks", "all");
        p.put("delivery.timeout.ms", "30000");
        p.put("request.timeout.ms", "10000");
        p.put("linger.ms", "5");
        boolean modern = job[2].equals("true");
        if (!modern) {
          p.put("enable.idempotence", "false");
        }
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
          List<Future<RecordMetadata>> acks = new ArrayList<>();
          for (String[] row : Lines.rows(records)) {
            row[4] = modern ? row[4] : "";
            acks.add(producer.send(Era.record(job[0], row)));
          }
          for (Future<RecordMetadata> ack : acks) {
            RecordMetadata m = ack.get();
            w.write(m.topic() + "\t" + m.partition() + "\t" + m.offset() + "\n");
          }
        } catch (Exception e) {
          w.write(Lines.failure(job[0], e));
        }
      }
    }
  }
}
