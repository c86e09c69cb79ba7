"""Calls of kafka-python's admin client: admin.py BROKER PREFIX. It prints a line for each; the first wrong result ends it."""
import sys

from kafka import KafkaProducer
from kafka.admin import (ACLFilter, ACLOperation, ACLPermissionType, ACLResourcePatternType, ConfigResource, ConfigResourceType,
                         KafkaAdminClient, NewPartitions, NewTopic, OffsetSpec, ResourcePatternFilter, ResourceType, ScramMechanism,
                         UserScramCredentialDeletion, UserScramCredentialUpsertion)
from kafka.errors import InvalidPartitionsError, SecurityDisabledError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata, TopicPartition

broker, prefix = sys.argv[1:]
topic, group, user = prefix + '-topic', prefix + '-group', prefix + '-user'
first = TopicPartition(topic, 0)
admin = KafkaAdminClient(bootstrap_servers=broker)


def done(name):
    print('call', name, flush=True)


def same(what, got, want):
    if got != want:
        sys.exit('%s: got %r, want %r' % (what, got, want))


def refused(name, error, call):
    try:
        got = call()
    except error:
        print('refused', name, flush=True)
        return
    sys.exit('%s is not refused: %r' % (name, got))


admin.create_topics([NewTopic(topic, 2, 1, topic_configs={'retention.ms': '12345678'})])
done('create_topics')
refused('create_topics again', TopicAlreadyExistsError, lambda: admin.create_topics([NewTopic(topic, 2, 1)]))
same('list_topics', topic in admin.list_topics(), True)
done('list_topics')
admin.create_partitions({topic: NewPartitions(3)})
done('create_partitions')
refused('create_partitions of fewer', InvalidPartitionsError, lambda: admin.create_partitions({topic: NewPartitions(1)}))
same('describe_topics', len(admin.describe_topics([topic])[0]['partitions']), 3)
done('describe_topics')
admin.describe_topic_partitions([topic])
done('describe_topic_partitions')
cluster = admin.describe_cluster()
same('describe_cluster', len(cluster['brokers']), 1)
done('describe_cluster')


def value(key):
    found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter='all')
    return found['topic'][topic][key]['value']


same('describe_configs', value('retention.ms'), '12345678')
done('describe_configs')
admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={'segment.ms': '86400000'})])
same('alter_configs', (value('segment.ms'), value('retention.ms')), ('86400000', '12345678'))
done('alter_configs')
admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=['segment.ms'])])
same('reset_configs', value('segment.ms'), '604800000')
done('reset_configs')
admin.list_config_resources()
done('list_config_resources')

producer = KafkaProducer(bootstrap_servers=broker, acks='all')
for _ in range(10):
    producer.send(topic, b'v', partition=0).get(20)
producer.close()
same('delete_records', admin.delete_records({first: 4})[first]['low_watermark'], 4)
done('delete_records')
same('list_partition_offsets', admin.list_partition_offsets({first: OffsetSpec.LATEST})[first].offset, 10)
done('list_partition_offsets')

admin.alter_group_offsets(group, {first: OffsetAndMetadata(5, 'note', -1)})
done('alter_group_offsets')
same('list_group_offsets', admin.list_group_offsets(group)[group][first].offset, 5)
done('list_group_offsets')
same('list_groups', [g['group_id'] for g in admin.list_groups() if g['group_id'] == group], [group])
done('list_groups')
same('describe_groups', admin.describe_groups([group])[group]['group_state'], 'Empty')
done('describe_groups')
admin.reset_group_offsets(group, {first: OffsetSpec.EARLIEST})
same('reset_group_offsets', admin.list_group_offsets(group)[group][first].offset, 4)
done('reset_group_offsets')
admin.delete_group_offsets(group, [first])
done('delete_group_offsets')
admin.alter_group_offsets(group, {first: OffsetAndMetadata(5, 'note', -1)})
admin.delete_groups([group])
done('delete_groups')
same('delete_groups of none', admin.delete_groups([group])[group], 'GroupIdNotFoundError')

same('alter_user_scram_credentials', admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_256, b'secret', 4096)]),
     {user: None})
done('alter_user_scram_credentials')
same('describe_user_scram_credentials', admin.describe_user_scram_credentials([user])[user]['credential_infos'],
     [{'mechanism': ScramMechanism.SCRAM_SHA_256, 'iterations': 4096}])
done('describe_user_scram_credentials')
admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)])
topics = [t for b in admin.describe_log_dirs() for d in b['log_dirs'] for t in d['topics']]
same('describe_log_dirs', sorted(p['partition_index'] for t in topics if t['name'] == topic for p in t['partitions']), [0, 1, 2])
done('describe_log_dirs')
elected = admin.elect_leaders(0, {topic: [0]}, raise_errors=False)
same('elect_leaders', elected.replica_election_results[0].partition_result[0].error_code, 84)
done('elect_leaders')
same('list_partition_reassignments', admin.list_partition_reassignments(), {})
done('list_partition_reassignments')
same('describe_features', 'transaction.version' in admin.describe_features(), True)
done('describe_features')
admin.list_transactions()
done('list_transactions')
refused('describe_acls', SecurityDisabledError, lambda: admin.describe_acls(ACLFilter(
    None, '*', ACLOperation.ANY, ACLPermissionType.ANY, ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY))))
admin.delete_topics([topic])
same('delete_topics', topic in admin.list_topics(), False)
done('delete_topics')
print('done')
