"""One member of a group with kafka-python; arguments and output are those of java/GroupMember.java."""
import sys
import threading

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

broker, group, topic, instance = sys.argv[1:5]
stopped = threading.Event()


def say(*words):
    sys.stdout.write(" ".join(str(w) for w in words) + "\n")
    sys.stdout.flush()


def numbers(partitions):
    return ",".join(str(p.partition) for p in partitions)


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        say("revoked", numbers(revoked))

    def on_partitions_assigned(self, assigned):
        say("assigned", numbers(assigned))


def wait_for_end():
    while sys.stdin.buffer.read(1):
        pass
    stopped.set()


options = {"session_timeout_ms": 6000}
if instance != "-":
    options = {"session_timeout_ms": 30000, "group_instance_id": instance}
consumer = KafkaConsumer(
    bootstrap_servers=broker, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
    heartbeat_interval_ms=500, fetch_max_wait_ms=200, **options)
consumer.subscribe([topic], listener=Listener())
threading.Thread(target=wait_for_end, daemon=True).start()
while not stopped.is_set():
    done = {}
    try:
        for tp, records in consumer.poll(timeout_ms=200).items():
            for r in records:
                say("record", r.partition, r.offset, r.value.decode())
            done[TopicPartition(tp.topic, tp.partition)] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
        if done:
            consumer.commit(done)
            for tp, o in done.items():
                say("committed", tp.partition, o.offset)
    except KafkaError as e:
        say("failed", repr(e))
consumer.close()
