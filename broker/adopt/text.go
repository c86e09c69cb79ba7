package adopt

import (
	"fmt"
	"io"
	"strings"

	"gregor/broker/controller"
)

// Print writes the plan for people to read.
func (p *Plan) Print(w io.Writer) error {
	var b strings.Builder
	for _, d := range p.Dirs {
		kind, stop := "no meta.properties", "clean"
		switch d.Identity.Version {
		case 0:
			kind = "Kafka with ZooKeeper"
		case 1:
			kind = "Kafka in KRaft mode"
		}
		if !d.Clean {
			stop = "not clean"
		}
		fmt.Fprintf(&b, "directory %s: %s, last stop %s\n", d.Path, kind, stop)
	}
	fmt.Fprintf(&b, "cluster %s, broker %s\n", orNew(p.ClusterID), orNumber(p.NodeID))
	if p.KRaft {
		fmt.Fprintf(&b, "metadata.version %d\n", p.MetadataVersion)
	}
	p.printTopics(&b)
	fmt.Fprintf(&b, "groups: %d with %d committed offsets", p.Groups.Groups, p.Groups.Offsets)
	if p.Groups.Pending > 0 {
		fmt.Fprintf(&b, ", %d offsets in open transactions", p.Groups.Pending)
	}
	fmt.Fprintf(&b, "\ntransactional ids: %d, open transactions: %d\nnext producer id: %d\n", p.Transactions.IDs, p.Transactions.Open, p.NextProducerID)
	if len(p.Quotas) > 0 {
		fmt.Fprintf(&b, "client quotas: of %d users, client ids and addresses\n", len(p.Quotas))
	}
	section(&b, "notes", p.Notes)
	section(&b, "not carried", p.Lost)
	section(&b, "in the way", p.Blockers)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Plan) printTopics(b *strings.Builder) {
	fmt.Fprintf(b, "topics: %d\n", len(p.Topics))
	for i := range p.Topics {
		t := &p.Topics[i]
		var bytes, records int64
		formats := [3]int{}
		known := true
		for _, part := range t.Partitions {
			bytes += part.Bytes
			records += part.End - part.Start
			known = known && (part.End >= 0 || part.Path == "")
			for m, n := range part.Formats {
				formats[m] += n
			}
		}
		fmt.Fprintf(b, "  %s, id %s", t.Name, controller.FormatID(t.ID))
		if t.NewID {
			b.WriteString(" (new)")
		}
		fmt.Fprintf(b, ": %d partitions, %d bytes", len(t.Partitions), bytes)
		if known {
			fmt.Fprintf(b, ", %d offsets", records)
		}
		for m, n := range formats {
			if n > 0 && m < 2 {
				fmt.Fprintf(b, ", %d segments of format %d", n, m)
			}
		}
		fmt.Fprintf(b, "; configuration (%s):", t.Source)
		for _, key := range sortedKeys(t.Config) {
			fmt.Fprintf(b, " %s=%s", key, t.Config[key])
		}
		b.WriteString("\n")
	}
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "  - %s\n", l)
	}
}

func orNew(id string) string {
	if id == "" {
		return "(a new one)"
	}
	return id
}

func orNumber(id int32) string {
	if id < 0 {
		return "(as configured)"
	}
	return fmt.Sprint(id)
}
