// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

func TestProgress(t *testing.T) {
	for _, tc := range []struct {
		message     string
		at          configv1.ConditionStatus
		done, total int // none: it is not known
	}{
		{"Working towards 4.18.2: 503 of 842 done (59% complete), waiting on dns", configv1.ConditionTrue, 503, 842},
		{"Working towards 4.18.2: 0 of 842 done (0% complete)", configv1.ConditionTrue, 0, 842},
		{"Working towards 4.18.2: 842 of 842 done (100% complete), waiting up to 40 minutes on machine-config", configv1.ConditionTrue, 842, 842},
		{"Working towards 4.18.2: 843 of 842 done (100% complete)", configv1.ConditionTrue, 842, 842},
		{"Working towards https://example.com/a-release@sha256:abc: 12 of 842 done (1% complete), waiting up to 40 minutes on etcd, dns", configv1.ConditionTrue, 12, 842},
		{"Working towards 4.18.2: 503 of 842 done (59% complete)", configv1.ConditionFalse, 0, 0},
		{"Unable to apply 4.18.2: an unknown error has occurred: MultipleErrors", configv1.ConditionTrue, 0, 0},
		{"Working towards 4.18.2: downloading update", configv1.ConditionTrue, 0, 0},
		{"Working towards 4.18.2: 0 of 0 done (0% complete)", configv1.ConditionTrue, 0, 0},
		{"Working towards 4.18.2: 99999999999999999999 of 1 done (0% complete)", configv1.ConditionTrue, 0, 0},
	} {
		cv := openshifttest.ClusterVersion(openshifttest.VersionCondition(configv1.OperatorProgressing, tc.at, "", tc.message))
		done, total, ok := openshift.Progress(cv)
		if !ok {
			done, total = 0, 0
		}
		if ok != (tc.total > 0) || done != tc.done || total != tc.total {
			t.Errorf("%s %q: got %d of %d, %t", tc.at, tc.message, done, total, ok)
		}
	}
	if _, _, ok := openshift.Progress(&configv1.ClusterVersion{}); ok {
		t.Error("there is progress without a condition")
	}
}
