package controller

import (
	"reflect"
	"testing"

	"gregor/broker/meta"
)

// TestResources: keys are kept by name, whatever is in it, and a resource without keys is forgotten.
func TestResources(t *testing.T) {
	path := treeFile(t)
	tree := openTree(t, path)
	c := startOn(t, tree)
	if all, err := c.Resources(t.Context(), Groups); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	want := map[string]map[string]string{"a/b c%": {"k": "v"}, "<default>": {"x": ""}}
	for name, own := range want {
		if err := c.AlterResource(t.Context(), Groups, name, own); err != nil {
			t.Fatal(err)
		}
	}
	for _, own := range []map[string]string{{"k": "v"}, {"k": "w"}, {}, nil} {
		if err := c.AlterResource(t.Context(), Groups, "gone", own); err != nil {
			t.Fatal(err)
		}
	}
	c, _ = reload(t, tree, path)
	if all, err := c.Resources(t.Context(), Groups); err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%v, %v", all, err)
	}
	if all, err := c.Resources(t.Context(), ClientMetrics); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestReaddress: other addresses, the same start.
func TestReaddress(t *testing.T) {
	tree := openTree(t, treeFile(t))
	c := startOn(t, tree)
	node := func() meta.BrokerNode {
		data, _, err := tree.Get(t.Context(), meta.BrokerPath(1))
		if err != nil {
			t.Fatal(err)
		}
		n, err := meta.DecodeBroker(data)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	want := node()
	want.Endpoints = []Endpoint{{Listener: "A", Host: "h", Port: 1, Protocol: "PLAINTEXT"}, {Listener: "B", Host: "h", Port: 2, Protocol: "PLAINTEXT"}}
	if err := c.Readdress(t.Context(), []Endpoint{{Listener: "A", Host: "h", Port: 1}, {Listener: "B", Host: "h", Port: 2}}); err != nil {
		t.Fatal(err)
	}
	if got := node(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
