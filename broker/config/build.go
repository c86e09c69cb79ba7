package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// ValueError is one key with a value that cannot be used.
type ValueError struct {
	Key    string
	Value  string
	Origin string // file and line, "environment", a flag; may be ""
	// Problem says what is wrong and what is allowed.
	Problem string
}

func (e *ValueError) Error() string {
	if e.Origin == "" {
		return fmt.Sprintf("%s=%s: %s", e.Key, e.Value, e.Problem)
	}
	return fmt.Sprintf("%s=%s (%s): %s", e.Key, e.Value, e.Origin, e.Problem)
}

// Report is what is not wrong but must be said at the start, sorted by key.
type Report struct {
	Notes []Note
}

// Note is one key that was given and has no effect, or not the one that Kafka gives it.
type Note struct {
	Key    string
	Origin string
	// Unknown says that Kafka never had the key.
	Unknown bool
	// Text says what happens instead.
	Text string
}

// Grouped joins the notes that say the same of several keys into one, its keys separated by commas.
func (r Report) Grouped() []Note {
	var grouped []Note
	for _, n := range r.Notes {
		i := slices.IndexFunc(grouped, func(g Note) bool { return g.Text == n.Text && g.Unknown == n.Unknown })
		if i < 0 {
			grouped = append(grouped, n)
			continue
		}
		grouped[i].Key += ", " + n.Key
		if grouped[i].Origin != n.Origin {
			grouped[i].Origin += ", " + n.Origin
		}
	}
	return grouped
}

func (n Note) String() string { return n.Key + ": " + n.Text }

// builder collects what is said about values while a Server is made.
type builder struct {
	server *Server
	static Layer
	origin map[string]string
	// controllers are the listeners of a KRaft controller, which are left out.
	controllers []string
	notes       []Note
	errs        []error
}

// NewServer makes a configuration from layers, the strongest first: NewServer(Layer{Values: settings}) for one map. The error
// joins a *ValueError for every wrong key. The report is valid with an error as well.
func NewServer(layers ...Layer) (*Server, Report, error) {
	b := &builder{
		server: &Server{values: map[string]any{}},
		static: Layer{Source: SourceStatic, Values: Merge(layers...)},
		origin: map[string]string{},
	}
	b.controllers = splitList(strings.ToUpper(strings.TrimSpace(b.static.Values["controller.listener.names"])))
	var dynamic []Layer
	for i := len(layers) - 1; i >= 0; i-- {
		l := layers[i]
		if !l.isStatic() {
			dynamic = append(dynamic, l)
			continue
		}
		for name := range l.Values {
			b.origin[name] = l.where(name)
		}
		for _, name := range l.Repeated {
			b.note(name, "is given more than once; the last value counts", false)
		}
	}
	b.readStatic()
	b.nodeID()
	sort.SliceStable(dynamic, func(i, j int) bool { return dynamic[i].Source < dynamic[j].Source })
	b.server.layers = append(dynamic, b.static)
	b.effective()
	b.server.fill()
	b.logDir()
	b.listeners()
	b.compactionLag()
	b.cleaner()
	b.connections()
	b.listenerLimits()
	b.zookeeper()
	sort.SliceStable(b.notes, func(i, j int) bool { return b.notes[i].Key < b.notes[j].Key })
	return b.server, Report{Notes: b.notes}, errors.Join(b.errs...)
}

func (b *builder) note(name, text string, unknown bool) {
	b.notes = append(b.notes, Note{Key: name, Origin: b.origin[name], Unknown: unknown, Text: text})
}

func (b *builder) fail(name, problem string) {
	value := b.static.Values[name]
	if k := brokerCatalog().byName[name]; k != nil && k.typ == Password {
		value = "[hidden]"
	}
	b.errs = append(b.errs, &ValueError{Key: name, Value: value, Origin: b.origin[name], Problem: problem})
}

// readStatic checks every given key, and takes those out that are not ours.
func (b *builder) readStatic() {
	for _, name := range slices.Sorted(maps.Keys(b.static.Values)) {
		k, ok := brokerCatalog().byName[name]
		if _, _, limit := isListenerLimit(name); limit {
			continue
		}
		if !ok {
			b.unused(name)
			delete(b.static.Values, name)
			continue
		}
		v, _, problem := k.parse(b.static.Values[name])
		switch {
		case k.refused != "":
			b.fail(name, k.refused)
		case problem != "":
			b.fail(name, k.explain(problem))
		case k.idle != "" && format(v) != k.moot && format(v) != k.def:
			b.note(name, "has no effect: "+k.idle, false)
		}
	}
}

// explain adds what is allowed to Kafka's wording.
func (k *key) explain(problem string) string {
	problem = strings.ToLower(problem[:1]) + problem[1:]
	switch {
	case k.rule != nil:
		return problem + "; allowed: " + k.rule.allowed()
	case k.typ == Boolean:
		return problem
	}
	return problem + "; allowed: a whole number of type " + k.typ.String()
}

func (b *builder) unused(name string) {
	if text, ok := acceptedPrefix(name); ok {
		b.note(name, "has no effect: "+text, false)
		return
	}
	if k, ok := topicCatalog().byName[name]; ok {
		text := "is a topic's key and is ignored here"
		if len(k.from) > 0 {
			text += "; the broker's default for it is " + k.from[0].name
		}
		b.note(name, text, true)
		return
	}
	text := "is not a key of Kafka or gregor and is ignored"
	if near := Nearest(name); near != "" {
		text += "; did you mean " + near + "?"
	}
	b.note(name, text, true)
}

// effective finds the value of each key: the strongest layer's, else the default. Values that are wrong were reported, and leave the default.
func (b *builder) effective() {
	for name, k := range brokerCatalog().byName {
		if !k.null {
			b.server.values[name], _, _ = k.parse(k.def)
		}
		for _, l := range b.server.layers {
			text, given := l.Values[name]
			if !given {
				continue
			}
			if v, _, problem := k.parse(text); problem == "" {
				b.server.values[name] = v
				break
			}
		}
	}
}

// nodeID makes broker.id and node.id the same, as DescribeConfigs shows them.
func (b *builder) nodeID() {
	b.server.NodeID = -1
	broker, hasBroker := b.static.Values["broker.id"]
	node, hasNode := b.static.Values["node.id"]
	switch {
	case hasBroker && hasNode && broker != node:
		b.fail("node.id", "must be the same as broker.id, which is "+broker)
		return
	case hasBroker && !hasNode:
		node = broker
	case !hasNode:
		return
	}
	v, _, problem := brokerCatalog().byName["broker.id"].parse(node)
	if n, ok := v.(int64); ok && problem == "" {
		b.server.NodeID = int32(n)
		if n >= 0 {
			b.static.Values["broker.id"], b.static.Values["node.id"] = node, node
		}
	}
}

func (b *builder) logDir() {
	name := "log.dirs"
	dirs := b.server.list(name)
	if b.server.values[name] == nil {
		name = "log.dir"
		dirs = b.server.list(name)
	}
	switch {
	case len(dirs) == 0 || slices.Contains(dirs, ""):
		b.fail(name, "is empty; allowed: paths of directories")
	case repeatedDir(dirs) != "":
		b.fail(name, "has "+repeatedDir(dirs)+" twice")
	default:
		b.server.LogDir, b.server.LogDirs = dirs[0], dirs
	}
}

// repeatedDir is a directory that is there twice, "" if none is.
func repeatedDir(dirs []string) string {
	seen := make(map[string]bool)
	for _, d := range dirs {
		if clean := filepath.Clean(d); seen[clean] {
			return d
		} else {
			seen[clean] = true
		}
	}
	return ""
}

func (b *builder) listeners() {
	s := b.server
	protocols, err := protocolMap(s.text("listener.security.protocol.map"))
	if err != nil {
		b.fail("listener.security.protocol.map", err.Error())
		return
	}
	controllers := b.controllers
	s.Listeners, err = listenerSet(s.list("listeners"), protocols, controllers)
	switch {
	case err != nil:
		b.fail("listeners", err.Error())
		return
	case len(s.Listeners) == 0:
		b.fail("listeners", "no address to listen on; allowed: for example "+defaultAddr)
		return
	}
	s.Advertised, err = listenerSet(s.list("advertised.listeners"), protocols, controllers)
	if err != nil {
		b.fail("advertised.listeners", err.Error())
		return
	}
	b.advertised()
}

func (b *builder) advertised() {
	for _, a := range b.server.Advertised {
		known := slices.ContainsFunc(b.server.Listeners, func(l Listener) bool { return l.Name == a.Name })
		switch {
		case !known:
			b.fail("advertised.listeners", a.Name+" is not among listeners")
		case a.Host == "" || a.Host == "0.0.0.0" || a.Host == "::":
			b.fail("advertised.listeners", "clients cannot connect to "+a.String()+"; allowed: a host name or address that they can reach")
		case a.Port == 0:
			b.fail("advertised.listeners", "clients cannot connect to port 0 of "+a.String())
		}
	}
}

// connections checks that somebody may connect.
func (b *builder) connections() {
	if b.server.MaxConnectionsPerIP < 0 && len(b.server.ConnectionOverrides) == 0 {
		b.fail("max.connections.per.ip", "can be set to zero only if max.connections.per.ip.overrides property is set.")
	}
}

// cleaner checks what Kafka checks of compaction's memory.
func (b *builder) cleaner() {
	c := &b.server.Cleaner
	if c.Threads > 0 && c.DedupeBytes/int64(c.Threads) <= 1<<20 {
		b.fail("log.cleaner.dedupe.buffer.size", "must be more than 1 MiB for each of log.cleaner.threads")
	}
}

func (b *builder) compactionLag() {
	low, high := b.server.integer("log.cleaner.min.compaction.lag.ms"), b.server.integer("log.cleaner.max.compaction.lag.ms")
	if low > high {
		b.fail("log.cleaner.min.compaction.lag.ms", fmt.Sprintf("is greater than log.cleaner.max.compaction.lag.ms, which is %d", high))
	}
}
