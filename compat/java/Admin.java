import java.util.Arrays;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.config.ConfigResource;

/**
 * What AdminClient could do from its first version, 0.11, on: Admin BROKER TOPIC makes the topic with 3 partitions, lists,
 * describes and deletes it and prints what it saw.
 */
public final class Admin {
  private Admin() {}

  public static void main(String[] args) throws Exception {
    Properties p = new Properties();
    p.put("bootstrap.servers", args[0]);
    p.put("request.timeout.ms", "20000");
    String topic = args[1];
    try (AdminClient admin = AdminClient.create(p)) {
      System.out.println("nodes " + admin.describeCluster().nodes().get().size());
      NewTopic made = new NewTopic(topic, 3, (short) 1).configs(Collections.singletonMap("retention.ms", "12345678"));
      admin.createTopics(Collections.singletonList(made)).all().get();
      System.out.println("listed " + admin.listTopics().names().get().contains(topic));
      TopicDescription seen = admin.describeTopics(Collections.singletonList(topic)).all().get().get(topic);
      System.out.println("partitions " + seen.partitions().size() + " internal " + seen.isInternal());
      ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
      System.out.println("retention " + admin.describeConfigs(Arrays.asList(resource)).all().get().get(resource).get("retention.ms").value());
      admin.deleteTopics(Collections.singletonList(topic)).all().get();
      System.out.println("listed " + admin.listTopics().names().get().contains(topic));
    }
  }
}
