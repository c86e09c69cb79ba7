package quota

import (
	"maps"
	"math"
)

// Values are the quotas of one entity by key.
type Values map[string]float64

// table is all quotas; it does not change once it is published.
type table struct {
	of   map[Entity]Values
	some [kinds]bool // whether any entity has one of the kind
}

func (t *table) with(e Entity, v Values) *table {
	next := &table{of: maps.Clone(t.of)}
	if next.of == nil {
		next.of = make(map[Entity]Values)
	}
	if len(v) == 0 {
		delete(next.of, e)
	} else {
		next.of[e] = v
	}
	for _, v := range next.of {
		for k := range kinds {
			if _, ok := v[k.String()]; ok {
				next.some[k] = true
			}
		}
	}
	return next
}

// limit is a quota that was found: the rate, and who shares it.
type limit struct {
	rate  float64
	share Entity
}

// find looks the quota of a client up, the most specific first (KIP-55).
func (t *table) find(k Kind, user, client string) (limit, bool) {
	both, one, id := Entity{User: user, Client: client}, Entity{User: user}, Entity{Client: client}
	for _, try := range [...]struct{ at, share Entity }{
		{both, both}, {Entity{User: user, Client: Default}, both}, {one, one},
		{Entity{User: Default, Client: client}, both}, {Entity{User: Default, Client: Default}, both}, {Entity{User: Default}, one},
		{id, id}, {Entity{Client: Default}, id},
	} {
		if v, ok := t.of[try.at][k.String()]; ok {
			return limit{v, try.share}, true
		}
	}
	return limit{rate: math.Inf(1)}, false
}

// findIP looks the quota of an address up.
func (t *table) findIP(ip string) (limit, bool) {
	share := Entity{IP: ip}
	for _, at := range [...]Entity{share, {IP: Default}} {
		if v, ok := t.of[at][Connection.String()]; ok {
			return limit{v, share}, true
		}
	}
	return limit{}, false
}
