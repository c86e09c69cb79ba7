package broker

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/broker/quota"
	"gregor/wire"
)

// DescribeClientQuotas (key 48) and AlterClientQuotas (key 49), versions 0 and 1. They are kept in the metadata tree, where Kafka has them, and in force
// at once. Each entry of an alteration succeeds or fails by itself.

// Types of the parts of an entity.
const (
	entityUser   = "user"
	entityClient = "client-id"
	entityIP     = "ip"
)

// loadQuotas puts what the tree has into force. Called by Start.
func (b *Broker) loadQuotas(ctx context.Context) error {
	all, err := b.control.Entities(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		e, err := quota.EntityAt(one.Path)
		if err != nil {
			b.logger.Warn("settings of an entity cannot be read and have no effect", "path", one.Path, "error", err)
			continue
		}
		b.quotas.Set(e, b.quotaValues(one))
	}
	if err := b.loadClientMetrics(ctx); err != nil {
		return err
	}
	return b.loadGroupConfigs(ctx)
}

// loadQuota puts into force what the tree has of one entity.
func (b *Broker) loadQuota(ctx context.Context, path string) error {
	e, err := quota.EntityAt(path)
	if err != nil {
		b.logger.Warn("settings of an entity cannot be read and have no effect", "path", path, "error", err)
		return nil
	}
	keys, err := b.control.EntityConfig(ctx, path)
	if err == nil {
		b.quotas.Set(e, b.quotaValues(controller.Entity{Path: path, Keys: keys}))
	}
	return err
}

// quotaValues are the quotas among the settings of an entity.
func (b *Broker) quotaValues(one controller.Entity) quota.Values {
	values := quota.Values{}
	for key, text := range one.Keys {
		k, ok := quota.KindOf(key)
		if !ok {
			continue // such as SCRAM credentials
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || k.Problem(v) != "" {
			b.logger.Warn("quota is not valid and has no effect", "path", one.Path, "key", key, "value", text, "problem", k.Problem(v))
			continue
		}
		values[key] = v
	}
	return values
}

func (b *Broker) handleAlterClientQuotas(ctx context.Context, _ *wire.Request, r *kmsg.AlterClientQuotasRequest) kmsg.Response {
	resp := kmsg.NewPtrAlterClientQuotasResponse()
	resp.Entries = make([]kmsg.AlterClientQuotasResponseEntry, 0, len(r.Entries))
	b.admin.Lock()
	defer b.admin.Unlock()
	count := make(map[string]int, len(r.Entries))
	for i := range r.Entries {
		count[entityText(r.Entries[i].Entity)]++
	}
	for i := range r.Entries {
		in := &r.Entries[i]
		name := entityText(in.Entity)
		var err error
		switch times := count[name]; {
		case times == 0: // answered already
			continue
		case times > 1 || len(repeated(in.Ops, func(op *kmsg.AlterClientQuotasRequestEntryOp) string { return op.Key })) > 0:
			err = refuse(kerr.InvalidRequest, "Ignoring duplicate entity ClientQuotaEntity(entries=%s)", name)
		default:
			err = b.alterQuotas(ctx, in, r.ValidateOnly)
		}
		count[name] = 0
		out := kmsg.NewAlterClientQuotasResponseEntry()
		out.ErrorCode, out.ErrorMessage = code(err), errorText(err)
		out.Entity = answeredEntity(in.Entity)
		resp.Entries = append(resp.Entries, out)
	}
	return resp
}

// answeredEntity is an entity as the answer has it: of a type that is there twice the last counts.
func answeredEntity(parts []kmsg.AlterClientQuotasRequestEntryEntity) (out []kmsg.AlterClientQuotasResponseEntryEntity) {
	last := make(map[string]int, len(parts))
	for i := range parts {
		last[parts[i].Type] = i
	}
	for i, part := range parts {
		if last[part.Type] != i {
			continue
		}
		p := kmsg.NewAlterClientQuotasResponseEntryEntity()
		p.Type, p.Name = part.Type, part.Name
		out = append(out, p)
	}
	return out
}

// entityText names an entity in Kafka's words, the same for the same entity.
func entityText(parts []kmsg.AlterClientQuotasRequestEntryEntity) string {
	names := make(map[string]string, len(parts))
	for _, part := range parts {
		if names[part.Type] = "null"; part.Name != nil {
			names[part.Type] = *part.Name
		}
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(names)) {
		words = append(words, kind+"="+names[kind])
	}
	return "{" + strings.Join(words, ", ") + "}"
}

// alterQuotas changes the quotas of one entity. Broker.admin is held.
func (b *Broker) alterQuotas(ctx context.Context, in *kmsg.AlterClientQuotasRequestEntry, validateOnly bool) error {
	e, err := requestedEntity(in.Entity)
	if err != nil {
		return err
	}
	change := make(map[string]*string, len(in.Ops))
	for _, op := range in.Ops {
		k, ok := quota.KindOf(op.Key)
		if op.Remove {
			change[op.Key] = nil
			continue
		}
		if !ok || e.CheckKind(k) != nil {
			return refuse(kerr.InvalidRequest, "Invalid configuration key %s", op.Key)
		}
		if problem := k.Problem(op.Value); problem != "" {
			return refuse(kerr.InvalidRequest, "%s", problem)
		}
		change[op.Key] = quotaText(k, op.Value)
	}
	if validateOnly {
		return nil
	}
	keys, err := b.control.AlterEntity(ctx, e.Path(), change)
	if err != nil {
		return err
	}
	b.quotas.Set(e, b.quotaValues(controller.Entity{Path: e.Path(), Keys: keys}))
	return nil
}

// quotaText is a quota as Kafka writes it into the tree.
func quotaText(k quota.Kind, v float64) *string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if (k == quota.Request || k == quota.Mutation) && !strings.Contains(text, ".") {
		text += ".0"
	}
	return &text
}

// requestedEntity is the entity of an alteration. A null name is the default.
func requestedEntity(parts []kmsg.AlterClientQuotasRequestEntryEntity) (quota.Entity, error) {
	var e quota.Entity
	if len(parts) == 0 {
		return e, refuse(kerr.InvalidRequest, "Invalid empty client quota entity")
	}
	for _, part := range parts {
		name := quota.Default
		if part.Name != nil {
			name = *part.Name
		}
		if name == "" {
			return e, refuse(kerr.InvalidRequest, "Empty %s not supported", part.Type)
		}
		at := map[string]*string{entityUser: &e.User, entityClient: &e.Client, entityIP: &e.IP}[part.Type]
		if at == nil {
			return e, refuse(kerr.InvalidRequest, "Unhandled client quota entity type: %s", part.Type)
		}
		*at = name // the last counts
	}
	if e.IP != "" && len(parts) > 1 {
		return e, refuse(kerr.InvalidRequest, "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
	}
	if _, err := netip.ParseAddr(e.IP); e.IP != "" && e.IP != quota.Default && err != nil {
		return e, refuse(kerr.InvalidRequest, "%s is not a valid IP address; host names are not looked up here", e.IP)
	}
	return e, nil
}

func (b *Broker) handleDescribeClientQuotas(_ context.Context, _ *wire.Request, r *kmsg.DescribeClientQuotasRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeClientQuotasResponse()
	filter, err := newQuotaFilter(r)
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
		return resp
	}
	resp.ErrorMessage = new(string) // Kafka's answer is empty, not null
	resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	b.quotas.All(func(e quota.Entity, values quota.Values) {
		if filter.matches(e) {
			resp.Entries = append(resp.Entries, describedQuotas(e, values))
		}
	})
	return resp
}

func describedQuotas(e quota.Entity, values quota.Values) kmsg.DescribeClientQuotasResponseEntry {
	out := kmsg.NewDescribeClientQuotasResponseEntry()
	for _, part := range [...][2]string{{entityUser, e.User}, {entityClient, e.Client}, {entityIP, e.IP}} {
		if part[1] == "" {
			continue
		}
		p := kmsg.NewDescribeClientQuotasResponseEntryEntity()
		p.Type = part[0]
		if part[1] != quota.Default {
			p.Name = &part[1]
		}
		out.Entity = append(out.Entity, p)
	}
	for key, v := range values {
		out.Values = append(out.Values, kmsg.DescribeClientQuotasResponseEntryValue{Key: key, Value: v})
	}
	slices.SortFunc(out.Values, func(a, b kmsg.DescribeClientQuotasResponseEntryValue) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// quotaFilter is what a description asks for.
type quotaFilter struct {
	parts  map[string]kmsg.DescribeClientQuotasRequestComponent
	strict bool // entities have no other parts
}

func newQuotaFilter(r *kmsg.DescribeClientQuotasRequest) (quotaFilter, error) {
	f := quotaFilter{parts: make(map[string]kmsg.DescribeClientQuotasRequestComponent), strict: r.Strict}
	for _, c := range r.Components {
		if c.EntityType != entityUser && c.EntityType != entityClient && c.EntityType != entityIP {
			if c.EntityType == "" {
				return f, refuse(kerr.InvalidRequest, "Invalid empty entity type.")
			}
			return f, refuse(kerr.UnsupportedVersion, "Unsupported entity type %s", c.EntityType)
		}
		if _, twice := f.parts[c.EntityType]; twice {
			return f, refuse(kerr.InvalidRequest, "Entity type %s cannot appear more than once in the filter.", c.EntityType)
		}
		if c.MatchType < kmsg.QuotasMatchTypeExact || c.MatchType > kmsg.QuotasMatchTypeAny {
			return f, refuse(kerr.InvalidRequest, "Unknown match type %d", c.MatchType)
		}
		if c.MatchType == kmsg.QuotasMatchTypeExact && c.Match == nil {
			return f, refuse(kerr.InvalidRequest, "Request specified MATCH_TYPE_EXACT, but set match string to null.")
		}
		if c.MatchType == kmsg.QuotasMatchTypeDefault && c.Match != nil {
			return f, refuse(kerr.InvalidRequest, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.")
		}
		f.parts[c.EntityType] = c
	}
	if _, ip := f.parts[entityIP]; ip && len(f.parts) > 1 {
		return f, refuse(kerr.InvalidRequest, "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter component.")
	}
	return f, nil
}

func (f *quotaFilter) matches(e quota.Entity) bool {
	if f.strict && len(f.parts) == 0 {
		return false
	}
	for _, part := range [...][2]string{{entityUser, e.User}, {entityClient, e.Client}, {entityIP, e.IP}} {
		c, asked := f.parts[part[0]]
		switch {
		case !asked && f.strict && part[1] != "":
			return false
		case !asked:
		case part[1] == "",
			c.MatchType == kmsg.QuotasMatchTypeDefault && part[1] != quota.Default,
			c.MatchType == kmsg.QuotasMatchTypeExact && (part[1] == quota.Default || part[1] != *c.Match):
			return false
		}
	}
	return true
}
