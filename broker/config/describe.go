package config

import (
	"maps"
	"slices"
	"strings"
)

// DescribeTopic returns the entries of a topic with the given keys of its own, sorted by name: those named, or all for nil names. Unknown names
// are left out. Names, values, sources and synonyms are those that Kafka gives; a default that is computed from several broker keys
// (retention.ms from log.retention.hours) has no synonyms, as in Kafka.
func (s *Server) DescribeTopic(overrides map[string]string, names []string) []Entry {
	return s.describeOwn(topicCatalog(), SourceTopic, overrides, names)
}

// describeOwn describes a thing with keys of its own, from the given source, over the broker's.
func (s *Server) describeOwn(c catalog, source Source, overrides map[string]string, names []string) []Entry {
	var entries []Entry
	for _, name := range selected(c, names) {
		k := c.byName[name]
		_, isOwn := overrides[name]
		if k.hidden && !isOwn {
			continue
		}
		e := Entry{Name: name, Type: k.typ, Documentation: k.doc, Source: SourceDefault}
		e.Value = text(s.topicValue(k, overrides))
		if isOwn {
			e.Synonyms = append(e.Synonyms, Synonym{Name: name, Value: e.Value, Source: source})
		}
		if len(k.from) > 0 {
			e.Synonyms = append(e.Synonyms, s.synonyms(k.from[0].name)...)
		}
		if len(e.Synonyms) > 0 {
			e.Source = e.Synonyms[0].Source
		}
		entries = append(entries, e)
	}
	return entries
}

// DescribeBroker returns the broker's entries, sorted by name: those named, or all for nil names. Unknown names are left out.
func (s *Server) DescribeBroker(names []string) []Entry {
	c := brokerCatalog()
	entries := make([]Entry, 0, len(c.names))
	for _, name := range selected(c, names) {
		k := c.byName[name]
		if names == nil && k.hidden && !s.given(name) {
			continue
		}
		e := Entry{Name: name, Type: k.typ, ReadOnly: !k.dynamic, Documentation: k.doc, Source: SourceDefault}
		e.Value = text(s.values[name])
		e.Synonyms = s.synonyms(name)
		if len(e.Synonyms) > 0 {
			e.Source = e.Synonyms[0].Source
		}
		if k.typ == Password {
			e.hide()
		}
		entries = append(entries, e)
	}
	if unknown := s.describeUnknown(names); len(unknown) > 0 {
		entries = append(entries, unknown...)
		slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	return entries
}

// describeUnknown describes what was set at run time and is no key of the broker: settings of one listener, and what is not known, which could be
// a password.
func (s *Server) describeUnknown(names []string) []Entry {
	found := map[string]*Entry{}
	for i := range s.layers {
		l := &s.layers[i]
		for name, value := range l.Values {
			if brokerCatalog().byName[name] != nil || names != nil && !slices.Contains(names, name) {
				continue
			}
			e := found[name]
			if e == nil {
				e = &Entry{Name: name, Value: &value, Source: l.Source, ReadOnly: true, Documentation: "Not known here, and without effect."}
				found[name] = e
			}
			e.Synonyms = append(e.Synonyms, Synonym{Name: name, Value: &value, Source: l.Source})
		}
	}
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(found)) {
		e := found[name]
		if k := brokerCatalog().byName[ofListener(name)]; k != nil && k.typ != Password {
			e.Type, e.Documentation = k.typ, "Accepted and without effect: "+noListenerKey+"."
			if _, _, ok := isListenerLimit(name); ok {
				e.Documentation = k.doc + " For one listener."
			}
			e.Synonyms = append(e.Synonyms, s.synonyms(k.name)...)
		} else {
			e.hide()
		}
		entries = append(entries, *e)
	}
	return entries
}

// hide takes out what nobody may see.
func (e *Entry) hide() {
	e.Sensitive, e.Value = true, nil
	for i := range e.Synonyms {
		e.Synonyms[i].Value = nil
	}
}

// given says whether a layer has the key.
func (s *Server) given(name string) bool {
	return slices.ContainsFunc(s.layers, func(l Layer) bool { _, ok := l.Values[name]; return ok })
}

// selected returns the catalog's names that are wanted, sorted.
func selected(c catalog, names []string) []string {
	if names == nil {
		return c.names
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	var found []string
	for _, name := range c.names {
		if wanted[name] {
			found = append(found, name)
		}
	}
	return found
}

// synonyms lists what was given for a broker key and those that stand in for it, strongest source first, then the defaults. Kafka leaves out
// what comes before the first value of the key itself, and everything when there is none; so do we.
func (s *Server) synonyms(name string) []Synonym {
	var all []Synonym
	for _, l := range s.layers {
		for _, other := range fallbacks(name) {
			if v, ok := l.Values[other]; ok {
				all = append(all, Synonym{Name: other, Value: &v, Source: l.Source})
			}
		}
	}
	for _, other := range fallbacks(name) {
		if k := brokerCatalog().byName[other]; !k.null {
			all = append(all, Synonym{Name: other, Value: &k.def, Source: SourceDefault})
		}
	}
	for i := range all {
		if all[i].Name == name {
			return all[i:]
		}
	}
	return nil
}

// text is the value as DescribeConfigs has it.
func text(v any) *string {
	if v == nil {
		return nil
	}
	s := format(v)
	return &s
}
