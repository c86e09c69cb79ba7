import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ControlledShutdownRequestData;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.message.StopReplicaRequestData.StopReplicaPartitionState;
import org.apache.kafka.common.message.StopReplicaRequestData.StopReplicaTopicState;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataBroker;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataEndpoint;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataPartitionState;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractControlRequest;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.ControlledShutdownRequest;
import org.apache.kafka.common.requests.LeaderAndIsrRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.StopReplicaRequest;
import org.apache.kafka.common.requests.UpdateMetadataRequest;

/** Prints the requests of a controller as Apache Kafka writes them, one a line: name, version, bytes with their header. */
public class ControlRequests {
    static final long EPOCH = 0x1122334455L;
    static final Map<String, Uuid> IDS = Map.of("a", id(33), "t", id(1), "u", id(17));

    static Uuid id(int first) {
        ByteBuffer b = ByteBuffer.allocate(16);
        for (int i = 0; i < 16; i++) b.put((byte) (first + i));
        return new Uuid(b.getLong(0), b.getLong(8));
    }

    static void print(String name, AbstractRequest request, short version) {
        ByteBuffer b = request.serializeWithHeader(new RequestHeader(request.apiKey(), version, "1", 9));
        byte[] bytes = new byte[b.remaining()];
        b.get(bytes);
        System.out.println(name + " " + version + " " + HexFormat.of().formatHex(bytes));
    }

    static void leaderAndIsr(short v) {
        List<LeaderAndIsrPartitionState> states = new ArrayList<>();
        states.add(new LeaderAndIsrPartitionState().setTopicName("t").setPartitionIndex(0).setControllerEpoch(4).setLeader(2).setLeaderEpoch(3)
            .setIsr(List.of(2, 3)).setPartitionEpoch(6).setReplicas(List.of(2, 3, 9)).setAddingReplicas(List.of(9)).setRemovingReplicas(List.of(3)).setIsNew(true));
        states.add(new LeaderAndIsrPartitionState().setTopicName("u").setPartitionIndex(1).setControllerEpoch(5).setLeader(-1).setLeaderEpoch(7)
            .setIsr(List.of(3)).setPartitionEpoch(8).setReplicas(List.of(3)).setIsNew(false));
        print("LeaderAndIsr", new LeaderAndIsrRequest.Builder(v, 1, 5, EPOCH, states, IDS, List.of(new Node(2, "h2", 92)), false,
            AbstractControlRequest.Type.UNKNOWN).build(v), v);
    }

    static UpdateMetadataPartitionState state(String topic, int partition, int leader, int epoch, int version, List<Integer> replicas, List<Integer> offline) {
        return new UpdateMetadataPartitionState().setTopicName(topic).setPartitionIndex(partition).setControllerEpoch(5).setLeader(leader).setLeaderEpoch(epoch)
            .setIsr(List.of(3)).setZkVersion(version).setReplicas(replicas).setOfflineReplicas(offline);
    }

    static UpdateMetadataEndpoint endpoint(String listener, short protocol, String host, int port) {
        return new UpdateMetadataEndpoint().setListener(listener).setSecurityProtocol(protocol).setHost(host).setPort(port);
    }

    static void updateMetadata(short v) {
        List<UpdateMetadataPartitionState> states = List.of(state("a", 0, -2, 0, 0, List.of(3), List.of()),
            state("t", 0, 2, 3, 6, List.of(2, 3, 9), List.of(9)), state("u", 1, -1, 7, 8, List.of(3), List.of()));
        // before version 3 a listener is named by its protocol
        List<UpdateMetadataEndpoint> two = v == 0 ? List.of(endpoint("PLAINTEXT", (short) 0, "h2", 92))
            : List.of(endpoint("PLAINTEXT", (short) 0, "h2", 92), endpoint(v < 3 ? "SASL_SSL" : "OUT", (short) 3, "o2", 93));
        List<UpdateMetadataBroker> live = List.of(new UpdateMetadataBroker().setId(2).setRack("r").setEndpoints(two),
            new UpdateMetadataBroker().setId(3).setRack(null).setEndpoints(List.of(endpoint("PLAINTEXT", (short) 0, "h3", 94))));
        print("UpdateMetadata", new UpdateMetadataRequest.Builder(v, 1, 5, EPOCH, states, live, IDS, false,
            AbstractControlRequest.Type.UNKNOWN).build(v), v);
    }

    static StopReplicaTopicState stops(String topic, int partition, int epoch, boolean delete) {
        return new StopReplicaTopicState().setTopicName(topic).setPartitionStates(new ArrayList<>(List.of(
            new StopReplicaPartitionState().setPartitionIndex(partition).setLeaderEpoch(epoch).setDeletePartition(delete))));
    }

    static void stopReplica(String name, short v, boolean kraft) {
        List<StopReplicaTopicState> keep = List.of(stops("t", 0, 3, false)), delete = List.of(stops("a", 0, -2, true), stops("a", 1, -2, true));
        if (v >= 3) {
            StopReplicaTopicState d = stops("a", 0, -2, true);
            d.partitionStates().add(new StopReplicaPartitionState().setPartitionIndex(1).setLeaderEpoch(-2).setDeletePartition(true));
            print(name, new StopReplicaRequest.Builder(v, 1, 5, EPOCH, false, List.of(d, keep.get(0)), kraft).build(v), v);
            return;
        }
        print(name, new StopReplicaRequest.Builder(v, 1, 5, EPOCH, false, keep, kraft).build(v), v);
        StopReplicaTopicState d = stops("a", 0, -2, true);
        d.partitionStates().add(delete.get(1).partitionStates().get(0));
        print(name, new StopReplicaRequest.Builder(v, 1, 5, EPOCH, true, List.of(d), kraft).build(v), v);
    }

    public static void main(String[] args) {
        for (short v = 0; v <= ApiKeys.LEADER_AND_ISR.latestVersion(); v++) leaderAndIsr(v);
        for (short v = 0; v <= ApiKeys.UPDATE_METADATA.latestVersion(); v++) updateMetadata(v);
        for (short v = 0; v <= ApiKeys.STOP_REPLICA.latestVersion(); v++) stopReplica("StopReplica", v, false);
        stopReplica("StopReplicaOfKRaft", (short) 4, true);
        for (short v = 0; v <= ApiKeys.CONTROLLED_SHUTDOWN.latestVersion(); v++) {
            print("ControlledShutdown", new ControlledShutdownRequest.Builder(
                new ControlledShutdownRequestData().setBrokerId(7).setBrokerEpoch(EPOCH), v).build(v), v);
        }
    }
}
