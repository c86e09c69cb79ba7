package controller

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"gregor/broker/meta"
)

// TestBadNodes: what a tool wrote badly into a shared tree is left out, and the rest is there. In a tree of one's own it is damage.
func TestBadNodes(t *testing.T) {
	for path, lost := range map[string]string{
		meta.TopicPath("bad"):             "topic",
		meta.TopicConfigPath("bad"):       "topic",
		meta.PartitionStatePath("bad", 1): "topic",
		meta.BrokersPath + "/9":           "",
		meta.BrokersPath + "/nine":        "",
		"/config/users/bad":               "",
		Groups.node("bad"):                "",
		ClientMetrics.node("bad"):         "",
	} {
		t.Run(path, func(t *testing.T) {
			tree := openTree(t, treeFile(t))
			first := startOn(t, tree)
			first.mustCreate(t, "bad", 2)
			first.mustCreate(t, "good", 2)
			value := "1"
			_, err := first.AlterEntity(t.Context(), "/config/users/good", map[string]*string{"producer_byte_rate": &value})
			must(t, err)
			for _, kind := range []ResourceKind{Groups, ClientMetrics} {
				must(t, first.AlterResource(t.Context(), kind, "good", map[string]string{"interval.ms": "1000"}))
			}
			op := meta.SetOp(path, []byte(`{"version":1,"part`), meta.AnyVersion)
			if !exists(t, tree, path) {
				op = meta.CreateOp(path, []byte(`{"version":1,"part`), meta.Persistent)
			}
			must(t, tree.Multi(t.Context(), op))

			found, err := everything(t, first)
			if !errors.Is(err, meta.ErrBadNode) {
				t.Errorf("not damage in a tree of one's own: %q, %v", found, err)
			}
			conf := testConfig()
			conf.Shared = true
			c, err := Open(t.Context(), tree, conf)
			must(t, err)
			found, err = everything(t, c)
			want := []string{"bad", "good", "broker 1", "/config/users/good", "groups good", "client-metrics good"}
			if lost == "topic" {
				want = want[1:]
			}
			if err != nil || !slices.Equal(found, want) {
				t.Errorf("there are %q, not %q: %v", found, want, err)
			}
		})
	}
}

// everything names what a controller finds.
func everything(t *testing.T, c *Controller) (names []string, err error) {
	topics, err := c.Load(t.Context())
	for i := range topics {
		names = append(names, topics[i].Name)
	}
	slices.Sort(names)
	brokers, failed := c.Brokers(t.Context())
	if len(brokers) == 1 {
		names = append(names, "broker 1")
	}
	entities, failed2 := c.Entities(t.Context())
	for _, e := range entities {
		names = append(names, e.Path)
	}
	err = errors.Join(err, failed, failed2)
	for _, kind := range []ResourceKind{Groups, ClientMetrics} {
		all, failed := c.Resources(t.Context(), kind)
		for name := range maps.Keys(all) {
			names = append(names, string(kind)+" "+name)
		}
		err = errors.Join(err, failed)
	}
	return names, err
}
