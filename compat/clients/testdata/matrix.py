"""The kafka-python side of the client matrix. Commands and files are those of java/Matrix.java."""
import base64
import hashlib
import sys
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def encode(b):
    if b is None:
        return "-"
    if len(b) <= 256:
        return "=" + base64.b64encode(b).decode()
    return "#%d:%s" % (len(b), hashlib.sha256(b).hexdigest())


def decode(field):
    return None if field == "-" else base64.b64decode(field[1:])


def headers(field):
    pairs = [h.split("=", 1) for h in field.split(",")] if field else []
    return [(k, decode(v)) for k, v in pairs]


def rows(path):
    with open(path) as f:
        return [line.rstrip("\n").split("\t") for line in f]


def produce(broker, jobs, records, out):
    records = rows(records)
    with open(out, "w") as w:
        for topic, codec in rows(jobs):
            producer = KafkaProducer(
                bootstrap_servers=broker, acks="all", linger_ms=5,
                compression_type=None if codec == "none" else codec)
            acks = [producer.send(topic, partition=int(p), timestamp_ms=int(t), key=decode(k), value=decode(v), headers=headers(h))
                    for p, t, k, v, h in records]
            for ack in acks:
                m = ack.get(timeout=30)
                w.write("%s\t%d\t%d\n" % (m.topic, m.partition, m.offset))
            producer.close()


def consume(broker, topics, out, when):
    consumer = KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False)
    with open(out, "w") as w:
        for (topic,) in rows(topics):
            parts = sorted(TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic))
            consumer.assign(parts)
            consumer.seek_to_beginning(*parts)
            begin = consumer.beginning_offsets(parts)
            end = consumer.end_offsets(parts)
            at = consumer.offsets_for_times({tp: when for tp in parts})
            for tp in parts:
                w.write("?\t%s\t%d\t%d\t%d\t%d\n" % (topic, tp.partition, begin[tp], end[tp], at[tp].offset if at[tp] else -1))
            deadline = time.time() + 30
            while any(consumer.position(tp) < end[tp] for tp in parts):
                if time.time() > deadline:
                    raise SystemExit("%s: not read to its end %r within 30 s" % (topic, end))
                for batch in consumer.poll(timeout_ms=500).values():
                    for r in batch:
                        h = ",".join("%s=%s" % (k, encode(v)) for k, v in r.headers)
                        w.write("\t".join([r.topic, str(r.partition), str(r.offset), str(r.timestamp), encode(r.key), encode(r.value), h]) + "\n")
    consumer.close()


if __name__ == "__main__":
    if sys.argv[1] == "produce":
        produce(*sys.argv[2:6])
    else:
        consume(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
