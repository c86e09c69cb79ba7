package broker

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/controller"
	"gregor/broker/quota"
	"gregor/wire"
)

// DescribeUserScramCredentials (key 50) and AlterUserScramCredentials (key 51), version 0 (KIP-554). Credentials are kept with the user's quotas in the
// metadata tree, as Kafka writes them, for when clients can be asked for them.
//
//   - A user of whom anything is wrong is left as he was, the others of the request go on.
//   - What is stored cannot be turned back into the password, nor into what proves it (RFC 5802).

// scramMechanism is one of the two.
type scramMechanism struct {
	name string
	hash func() hash.Hash
}

func scramMechanismOf(n int8) (scramMechanism, bool) {
	switch n {
	case 1:
		return scramMechanism{"SCRAM-SHA-256", sha256.New}, true
	case 2:
		return scramMechanism{"SCRAM-SHA-512", sha512.New}, true
	}
	return scramMechanism{}, false
}

// Limits of the iterations that a credential may ask its clients for.
const scramLeast, scramMost = 4096, 16384

// scramText is the credential as Kafka's ScramCredentialUtils writes it.
func (m scramMechanism) text(u *kmsg.AlterUserSCRAMCredentialsRequestUpsertion) string {
	keyed := func(text string) []byte {
		h := hmac.New(m.hash, u.SaltedPassword)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := m.hash()
	stored.Write(keyed("Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("salt=%s,stored_key=%s,server_key=%s,iterations=%d", b64(u.Salt), b64(stored.Sum(nil)), b64(keyed("Server Key")), u.Iterations)
}

// scramIterations reads how many a stored credential asks for.
func scramIterations(text string) (int32, bool) {
	for part := range strings.SplitSeq(text, ",") {
		if n, ok := strings.CutPrefix(part, "iterations="); ok {
			v, err := strconv.ParseInt(n, 10, 32)
			return int32(v), err == nil
		}
	}
	return 0, false
}

func (b *Broker) handleAlterScram(ctx context.Context, _ *wire.Request, r *kmsg.AlterUserSCRAMCredentialsRequest) kmsg.Response {
	resp := kmsg.NewPtrAlterUserSCRAMCredentialsResponse()
	b.admin.Lock()
	defer b.admin.Unlock()
	users := newScramChanges(r)
	for _, name := range users.order {
		err := users.failed[name]
		if err == nil {
			err = b.alterScramOf(ctx, name, users.changes[name])
		}
		out := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
		out.User, out.ErrorCode, out.ErrorMessage = name, code(err), errorText(err)
		resp.Results = append(resp.Results, out)
	}
	return resp
}

// scramChanges is a request by user.
type scramChanges struct {
	order   []string
	changes map[string]map[string]*string // by mechanism; nil removes
	failed  map[string]error
}

func newScramChanges(r *kmsg.AlterUserSCRAMCredentialsRequest) *scramChanges {
	s := &scramChanges{changes: make(map[string]map[string]*string), failed: make(map[string]error)}
	for i := range r.Deletions {
		d := &r.Deletions[i]
		m, err := s.check(d.Name, d.Mechanism)
		s.add(d.Name, m.name, nil, err)
	}
	for i := range r.Upsertions {
		u := &r.Upsertions[i]
		m, err := s.check(u.Name, u.Mechanism)
		switch {
		case err != nil:
			s.add(u.Name, m.name, nil, err)
			continue
		case u.Iterations < scramLeast:
			err = refuse(kerr.UnacceptableCredential, "Too few iterations")
		case u.Iterations > scramMost:
			err = refuse(kerr.UnacceptableCredential, "Too many iterations")
		}
		text := m.text(u)
		s.add(u.Name, m.name, &text, err)
	}
	return s
}

func (s *scramChanges) check(user string, mechanism int8) (scramMechanism, error) {
	m, ok := scramMechanismOf(mechanism)
	switch {
	case user == "":
		return m, refuse(kerr.UnacceptableCredential, "Username must not be empty")
	case !ok:
		return m, refuse(kerr.UnsupportedSaslMechanism, "Unknown SCRAM mechanism")
	}
	return m, nil
}

// add takes one change in. The first error of a user stays.
func (s *scramChanges) add(user, mechanism string, value *string, err error) {
	if s.changes[user] == nil {
		s.changes[user] = make(map[string]*string)
		s.order = append(s.order, user)
	}
	if _, twice := s.changes[user][mechanism]; twice && err == nil {
		err = refuse(kerr.DuplicateResource, "A user credential cannot be altered twice in the same request")
	}
	s.changes[user][mechanism] = value
	if s.failed[user] == nil && err != nil {
		s.failed[user] = err
	}
}

// alterScramOf changes the credentials of one user. Broker.admin is held.
func (b *Broker) alterScramOf(ctx context.Context, user string, change map[string]*string) error {
	path := quota.Entity{User: user}.Path()
	own, err := b.control.EntityConfig(ctx, path)
	if err != nil {
		return err
	}
	for mechanism, value := range change {
		if _, there := own[mechanism]; value == nil && !there {
			return refuse(kerr.ResourceNotFound, "Attempt to delete a user credential that does not exist")
		}
	}
	_, err = b.control.AlterEntity(ctx, path, change)
	return err
}

func (b *Broker) handleDescribeScram(ctx context.Context, _ *wire.Request, r *kmsg.DescribeUserSCRAMCredentialsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
	resp.ErrorMessage = new(string) // Kafka's answers are empty, not null
	all, err := b.scramUsers(ctx)
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), errorText(err)
		return resp
	}
	names := make([]string, 0, len(r.Users))
	for _, u := range r.Users {
		names = append(names, u.Name)
	}
	if len(names) == 0 {
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	twice := repeated(names, func(n *string) string { return *n })
	answered := make(map[string]bool, len(names))
	for _, name := range names {
		if answered[name] {
			continue
		}
		answered[name] = true
		out := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		out.User, out.CredentialInfos = name, all[name]
		var err error
		switch {
		case twice[name]:
			err = refuse(kerr.DuplicateResource, "Cannot describe SCRAM credentials for the same user twice in a single request: %s", name)
			out.CredentialInfos = nil
		case len(all[name]) == 0:
			err = refuse(kerr.ResourceNotFound, "Attempt to describe a user credential that does not exist: %s", name)
		}
		out.ErrorCode, out.ErrorMessage = code(err), new(string)
		if err != nil {
			out.ErrorMessage = errorText(err)
		}
		resp.Results = append(resp.Results, out)
	}
	return resp
}

// scramUsers are the users with credentials.
func (b *Broker) scramUsers(ctx context.Context) (map[string][]kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo, error) {
	entities, err := b.control.Entities(ctx)
	if err != nil {
		return nil, err
	}
	users := make(map[string][]kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo)
	for _, e := range entities {
		at, err := quota.EntityAt(e.Path)
		if err != nil || at.User == "" || at.Client != "" {
			continue
		}
		if infos := scramInfos(e); len(infos) > 0 {
			users[at.User] = infos
		}
	}
	return users, nil
}

func scramInfos(e controller.Entity) (infos []kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo) {
	for n := int8(1); ; n++ {
		m, ok := scramMechanismOf(n)
		if !ok {
			return infos
		}
		if iterations, ok := scramIterations(e.Keys[m.name]); ok {
			infos = append(infos, kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo{Mechanism: n, Iterations: iterations})
		}
	}
}
