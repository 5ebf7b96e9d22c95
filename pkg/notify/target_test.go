// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"testing"
)

func TestSendRefusesBadTargets(t *testing.T) {
	header := func(name, value string) Target {
		return Target{URL: secretly("https://127.0.0.1:1"), Headers: map[string]string{name: value}}
	}
	cannot := func(name string) string {
		return `the header "` + name + `" cannot be chosen: remove it from the Secret of headersFrom`
	}
	for _, tc := range []struct {
		reason string
		target Target
		want   string
	}{
		{"no URL", Target{}, "the URL does not begin with http:// or https://"},
		{"no scheme", Target{URL: marker + "/"}, "the URL does not begin with http:// or https://"},
		{"another scheme", Target{URL: "ftp://" + marker}, "the URL does not begin with http:// or https://"},
		{"no host", Target{URL: "https:///" + marker}, "the URL has no host"},
		{"a port alone", Target{URL: "https://:443/" + marker}, "the URL has no host"},
		{"not an URL", Target{URL: "https://x/%zz" + marker}, "the URL cannot be parsed"},
		{"two lines", Target{URL: "https://x/\n" + marker}, "the URL cannot be parsed"},
		{"a password", Target{URL: "https://user:" + marker + "@x"}, "the URL contains a user or a password: put the header Authorization into the Secret of headersFrom"},
		{"headers over http", Target{URL: "http://127.0.0.1:1/" + marker, Headers: map[string]string{"X": marker}}, "headers are sent over https only: use an https URL, or no headersFrom"},
		{"Host", header("Host", marker), cannot("Host")},
		{"Content-Type", header("content-type", marker), cannot("content-type")},
		{"Content-Length", header("Content-Length", "1"), cannot("Content-Length")},
		{"Transfer-Encoding", header("transfer-encoding", "chunked"), cannot("transfer-encoding")},
		{"Connection", header("Connection", "close"), cannot("Connection")},
		{"TE", header("TE", "trailers"), cannot("TE")},
		{"Proxy-Authorization", header("Proxy-Authorization", marker), cannot("Proxy-Authorization")},
		{"not a name", header("X Token", marker), `"X Token" is not the name of a header`},
		{"an empty name", header("", marker), `"" is not the name of a header`},
		{"a name beyond ASCII", header("Tökén", marker), `"Tökén" is not the name of a header`},
		{"a very long name", header(strings.Repeat("x ", 100), marker), `"` + strings.Repeat("x ", 30) + `x..." is not the name of a header`},
		{"a line break", header("X-Token", marker+"\r\nX-Other: "+marker), `the value of the header "X-Token" has a line break or another character that no header may have`},
		{"a control character", header("X-Token", marker+"\x00"), `the value of the header "X-Token" has a line break or another character that no header may have`},
		{
			"the same header twice",
			Target{URL: "https://127.0.0.1:1", Headers: map[string]string{"X-Token": marker, "x-token": marker}},
			`the header "X-Token" is in the Secret of headersFrom more than once`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			expectFailure(t, newSender().Send(t.Context(), tc.target, secretEvent(t)), tc.want)
		})
	}
}
