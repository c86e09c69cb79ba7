package group

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumerType is the protocol type of consumers, whose metadata the coordinator can read.
const consumerType = "consumer"

// compatible reports if a member with these protocols can be in the group.
func (g *Group) compatible(protocolType string, protocols []kmsg.JoinGroupRequestProtocol) bool {
	if len(g.members) == 0 {
		return protocolType != "" && len(protocols) > 0
	}
	if protocolType != g.protocolType {
		return false
	}
	common := g.common()
	for i := range protocols {
		if common[protocols[i].Name] {
			return true
		}
	}
	return false
}

// common is the set of protocols that all members speak. A member may name one twice, and name very many.
func (g *Group) common() map[string]bool {
	spoken := make(map[string]int) // by how many members in a row, from the first on
	for i, m := range g.order {
		for _, p := range m.protocols {
			if spoken[p.name] == i {
				spoken[p.name] = i + 1
			}
		}
	}
	common := make(map[string]bool)
	for name, n := range spoken {
		if n == len(g.order) {
			common[name] = true
		}
	}
	return common
}

// vote chooses the protocol: each member votes for the first in its list that all speak. Of several with most votes it is the one that was
// voted for first.
func (g *Group) vote() string {
	common := g.common()
	votes := make(map[string]int)
	var candidates []string
	for _, m := range g.order {
		for _, p := range m.protocols {
			if !common[p.name] {
				continue
			}
			if votes[p.name] == 0 {
				candidates = append(candidates, p.name)
			}
			votes[p.name]++
			break
		}
	}
	chosen := ""
	for _, name := range candidates {
		if chosen == "" || votes[name] > votes[chosen] {
			chosen = name
		}
	}
	return chosen
}

// learnTopics finds out what the members subscribe to. Topics are not known when any member's metadata is not what consumers send.
func (g *Group) learnTopics() {
	g.topics = make(map[string]struct{})
	if len(g.order) == 0 {
		return
	}
	if g.protocolType != consumerType {
		g.topics = nil
		return
	}
	for _, m := range g.order {
		if !addTopics(g.topics, m.metadata(g.protocol)) {
			g.topics = nil
			return
		}
	}
}

// addTopics reads the topics of a consumer's subscription. Every version begins as version 0 does.
func addTopics(topics map[string]struct{}, subscription []byte) bool {
	b := kbin.Reader{Src: subscription}
	if version := b.Int16(); version < 0 {
		return false
	}
	n := b.Int32()
	if n < 0 || int(n) > len(b.Src)/2 { // a topic takes two bytes at least
		return false
	}
	for range n {
		topics[b.String()] = struct{}{}
	}
	return b.Ok()
}

// subscribed reports if a live group of consumers uses a topic. What is not known counts as used.
func (g *Group) subscribed(topic string) bool {
	if g.protocolType != consumerType {
		return false
	}
	if g.topics == nil {
		return true
	}
	_, ok := g.topics[topic]
	return ok
}
