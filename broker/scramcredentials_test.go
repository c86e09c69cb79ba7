package broker

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestScramText: the credential of RFC 7677's example, in Kafka's form.
func TestScramText(t *testing.T) {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	salted, err := pbkdf2.Key(sha256.New, "pencil", salt, 4096, 32)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := scramMechanismOf(1)
	const want = "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=," +
		"server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
	if got := m.text(&kmsg.AlterUserSCRAMCredentialsRequestUpsertion{Salt: salt, SaltedPassword: salted, Iterations: 4096}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n, ok := scramIterations(want); !ok || n != 4096 {
		t.Errorf("%d iterations, %v", n, ok)
	}
}

func scramUpsertion(user string, mechanism int8, iterations int32) kmsg.AlterUserSCRAMCredentialsRequestUpsertion {
	return kmsg.AlterUserSCRAMCredentialsRequestUpsertion{Name: user, Mechanism: mechanism, Iterations: iterations,
		Salt: []byte("salt"), SaltedPassword: []byte("salted")}
}

// scramUsers describes all, as user:mechanism/iterations.
func scramUsers(c *client) string {
	var all []string
	for _, r := range ask[*kmsg.DescribeUserSCRAMCredentialsResponse](c, 0, kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()).Results {
		for _, info := range r.CredentialInfos {
			all = append(all, fmt.Sprintf("%s:%d/%d", r.User, info.Mechanism, info.Iterations))
		}
	}
	return strings.Join(all, " ")
}

// TestScramCredentials: refusals have the texts of Kafka 4.4.0 and change nothing; what is stored outlives a restart and leaves quotas alone.
func TestScramCredentials(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir)
	c := b.dial()
	type deletion = kmsg.AlterUserSCRAMCredentialsRequestDeletion
	alter := func(deletions []deletion, upsertions ...kmsg.AlterUserSCRAMCredentialsRequestUpsertion) string {
		r := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		r.Deletions, r.Upsertions = deletions, upsertions
		var all []string
		for _, res := range ask[*kmsg.AlterUserSCRAMCredentialsResponse](c, 0, r).Results {
			text := ""
			if res.ErrorMessage != nil {
				text = *res.ErrorMessage
			}
			all = append(all, fmt.Sprintf("%s %d %s", res.User, res.ErrorCode, text))
		}
		return strings.Join(all, "; ")
	}
	for _, tc := range []struct {
		deletions  []deletion
		upsertions []kmsg.AlterUserSCRAMCredentialsRequestUpsertion
		want       string
	}{
		{nil, []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{scramUpsertion("u", 1, 4096), scramUpsertion("u", 2, 8192), scramUpsertion("v/ü", 1, 16384)}, "u 0 ; v/ü 0 "},
		{nil, []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{scramUpsertion("", 1, 4096)}, " 93 Username must not be empty"},
		{nil, []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{scramUpsertion("w", 3, 4096)}, "w 33 Unknown SCRAM mechanism"},
		{nil, []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{scramUpsertion("w", 1, 4095)}, "w 93 Too few iterations"},
		{nil, []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{scramUpsertion("w", 1, 16385)}, "w 93 Too many iterations"},
		{[]deletion{{Name: "u", Mechanism: 1}}, []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{scramUpsertion("u", 1, 5000)},
			"u 92 A user credential cannot be altered twice in the same request"},
		{[]deletion{{Name: "w", Mechanism: 1}, {Name: "v/ü", Mechanism: 2}}, nil,
			"w 91 Attempt to delete a user credential that does not exist; v/ü 91 Attempt to delete a user credential that does not exist"},
	} {
		if got := alter(tc.deletions, tc.upsertions...); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	const want = "u:1/4096 u:2/8192 v/ü:1/16384"
	if got := scramUsers(c); got != want {
		t.Errorf("described %q, want %q", got, want)
	}
	b.stopClean()
	c = startBroker(t, dir).dial()
	if got := scramUsers(c); got != want {
		t.Errorf("after a restart %q, want %q", got, want)
	}
	if got := quotas(c); len(got) != 0 {
		t.Errorf("credentials are taken for quotas: %q", got)
	}
	if got := alter([]deletion{{Name: "u", Mechanism: 2}}); got != "u 0 " {
		t.Errorf("deleting: %q", got)
	}
	if got := scramUsers(c); got != "u:1/4096 v/ü:1/16384" {
		t.Errorf("after a deletion %q", got)
	}
	r := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	for _, name := range []string{"u", "u", "x"} {
		r.Users = append(r.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: name})
	}
	resp := ask[*kmsg.DescribeUserSCRAMCredentialsResponse](c, 0, r)
	if len(resp.Results) != 2 || resp.Results[0].ErrorCode != kerr.DuplicateResource.Code || resp.Results[1].ErrorCode != kerr.ResourceNotFound.Code {
		t.Errorf("one twice and one that is not there: %+v", resp.Results)
	}
}
