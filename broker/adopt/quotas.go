package adopt

import (
	"context"
	"fmt"
	"strconv"

	"gregor/broker/controller"
	"gregor/broker/kraft"
	"gregor/broker/meta"
	"gregor/broker/quota"
)

// Types of the parts of an entity in Kafka's metadata.
const (
	userPart   = "user"
	clientPart = "client-id"
	ipPart     = "ip"
)

// planQuotas takes the client quotas over as settings of the tree.
func (in *inspection) planQuotas(all []kraft.Quota) {
	for _, q := range all {
		e, ok := entityOf(q.Entity)
		if !ok {
			in.plan.Lost = append(in.plan.Lost, fmt.Sprintf("a client quota of an entity that is not known: %v", q.Values))
			continue
		}
		keys := map[string]string{}
		for key, value := range q.Values {
			kind, known := quota.KindOf(key)
			if !known || e.CheckKind(kind) != nil || kind.Problem(value) != "" {
				in.plan.Lost = append(in.plan.Lost, fmt.Sprintf("client quota %s=%v of %s", key, value, e))
				continue
			}
			keys[key] = strconv.FormatFloat(value, 'f', -1, 64)
		}
		if len(keys) > 0 {
			in.plan.Quotas = append(in.plan.Quotas, controller.Entity{Path: e.Path(), Keys: keys})
		}
	}
}

// entityOf reads an entity; ok is false for parts that are not known.
func entityOf(parts map[string]*string) (e quota.Entity, ok bool) {
	for kind, name := range parts {
		text := quota.Default
		if name != nil {
			text = *name
		}
		switch kind {
		case userPart:
			e.User = text
		case clientPart:
			e.Client = text
		case ipPart:
			e.IP = text
		default:
			return e, false
		}
	}
	return e, e != quota.Entity{} && (e.IP == "" || e.User+e.Client == "")
}

// quotasOf reads the client quotas of a tree.
func quotasOf(ctx context.Context, tree meta.Tree) ([]kraft.Quota, error) {
	all, err := controller.ReadEntities(ctx, tree)
	if err != nil {
		return nil, fmt.Errorf("reading the quotas: %w", err)
	}
	quotas := []kraft.Quota{}
	for _, one := range all {
		e, err := quota.EntityAt(one.Path)
		if err != nil {
			return nil, fmt.Errorf("metadata node %s: %w", one.Path, err)
		}
		q := kraft.Quota{Entity: map[string]*string{}, Values: map[string]float64{}}
		for kind, name := range map[string]string{userPart: e.User, clientPart: e.Client, ipPart: e.IP} {
			switch name {
			case "":
			case quota.Default:
				q.Entity[kind] = nil
			default:
				q.Entity[kind] = &name
			}
		}
		for key, text := range one.Keys {
			if _, ok := quota.KindOf(key); !ok {
				continue // such as SCRAM credentials
			}
			if q.Values[key], err = strconv.ParseFloat(text, 64); err != nil {
				return nil, fmt.Errorf("metadata node %s: %s is %q, not a number", one.Path, key, text)
			}
		}
		if len(q.Values) > 0 {
			quotas = append(quotas, q)
		}
	}
	return quotas, nil
}
