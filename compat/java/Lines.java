import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The tab-separated files of the client matrix. A field is "-" for null or "=" and base64, and while consuming
 * "#length:sha256" for more than 256 bytes; headers are key=field joined by commas. Records to send are partition,
 * timestamp, key, value, headers; records read are topic, partition, offset, timestamp, key, value, headers, with
 * timestamp -1 for a version that has none.
 */
final class Lines {
  private Lines() {}

  static List<String[]> rows(String path) throws Exception {
    return Files.readAllLines(Paths.get(path)).stream().map(l -> l.split("\t", -1)).collect(Collectors.toList());
  }

  static String record(String topic, int partition, long offset, long timestamp, byte[] key, byte[] value, String headers) throws Exception {
    return topic + "\t" + partition + "\t" + offset + "\t" + timestamp + "\t" + encode(key) + "\t" + encode(value) + "\t" + headers + "\n";
  }

  static String span(String topic, int partition, long begin, long end, String at) {
    return "?\t" + topic + "\t" + partition + "\t" + begin + "\t" + end + "\t" + at + "\n";
  }

  static String failure(String topic, Throwable e) {
    StringBuilder text = new StringBuilder();
    for (Throwable t = e; t != null; t = t.getCause()) {
      text.append(text.length() == 0 ? "" : ": ").append(t);
    }
    return "!\t" + topic + "\t" + text.toString().replaceAll("\\s+", " ") + "\n";
  }

  static String encode(byte[] b) throws Exception {
    if (b == null) {
      return "-";
    }
    if (b.length <= 256) {
      return "=" + Base64.getEncoder().encodeToString(b);
    }
    StringBuilder hex = new StringBuilder("#" + b.length + ":");
    for (byte x : MessageDigest.getInstance("SHA-256").digest(b)) {
      hex.append(Character.forDigit((x >> 4) & 15, 16)).append(Character.forDigit(x & 15, 16));
    }
    return hex.toString();
  }

  static byte[] decode(String field) {
    return field.equals("-") ? null : Base64.getDecoder().decode(field.substring(1));
  }
}
