// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// previewFacts is what a preview knows beside the config.
type previewFacts struct {
	now time.Time
	// version is nil where there is no cluster.
	version   *configv1.ClusterVersion
	configs   []v1beta1.UpgradeConfig
	jobs      []v1beta1.UpgradeJob
	windows   []v1beta1.UpgradeSuspensionWindow
	hooks     []v1beta1.UpgradeJobHook
	upgraders []v1beta1.Upgrader
	pools     []mcfgv1.MachineConfigPool
	// fromFile is the file that the configs are from; empty if they are the cluster's.
	fromFile string
	// leftOut says what could not be looked at.
	leftOut []string
}

func (f *previewFacts) leaveOut(what string) {
	if what != "" && !slices.Contains(f.leftOut, what) {
		f.leftOut = append(f.leftOut, what)
	}
}

// gatherPreview reads what a preview has to know, from the cluster if there is one, and from the file: what it has takes the place of what the cluster has.
func (t *tool) gatherPreview(ctx context.Context, c client.Client, file *previewFile) (*previewFacts, error) {
	f := &previewFacts{now: t.clock.Now()}
	if c == nil {
		f.leaveOut("the version that would be pinned: no cluster is looked at")
		f.leaveOut("windows, hooks, jobs and Upgraders that are not in the file: no cluster is looked at")
		f.leaveOut("the rules of the CRD and of admission: no cluster is looked at")
	} else if err := f.read(ctx, t, c, file != nil); err != nil {
		return nil, err
	}
	if file != nil {
		f.fromFile = file.name
		f.windows = overlaid(f.windows, file.windows)
		f.hooks = overlaid(f.hooks, file.hooks)
		f.upgraders = file.upgraders
	}
	return f, nil
}

// read reads the cluster. For a file it does without what the user may not read, and what the cluster does not have.
func (f *previewFacts) read(ctx context.Context, t *tool, c client.Client, lenient bool) error {
	configs, jobs, windows, hooks := &v1beta1.UpgradeConfigList{}, &v1beta1.UpgradeJobList{}, &v1beta1.UpgradeSuspensionWindowList{}, &v1beta1.UpgradeJobHookList{}
	for _, part := range []struct {
		what string
		list client.ObjectList
	}{{"UpgradeConfigs", configs}, {"UpgradeJobs", jobs}, {"UpgradeSuspensionWindows", windows}, {"UpgradeJobHooks", hooks}} {
		_, err := t.listOurs(ctx, c, "list "+part.what, part.list)
		if err := f.without(err, part.what+" of the cluster", lenient); err != nil {
			return err
		}
	}
	f.configs, f.jobs, f.windows, f.hooks = configs.Items, jobs.Items, windows.Items, hooks.Items
	cv := &configv1.ClusterVersion{}
	err := explain("get ClusterVersion/"+v1beta1.ClusterVersionName, c.Get(ctx, client.ObjectKey{Name: v1beta1.ClusterVersionName}, cv))
	if err == nil {
		f.version = cv
	} else if err := f.without(err, "the version that would be pinned", true); err != nil {
		return err
	}
	pools := &mcfgv1.MachineConfigPoolList{}
	err = explain("list MachineConfigPools", c.List(ctx, pools))
	f.pools = pools.Items
	return f.without(err, "which pools are delayed", true)
}

// without notes what could not be read, where the preview can do without it.
func (f *previewFacts) without(err error, what string, lenient bool) error {
	switch {
	case err == nil:
		return nil
	case lenient && apierrors.IsForbidden(err):
		f.leaveOut(what + ": you may not read that")
		return nil
	case lenient && meta.IsNoMatchError(err):
		f.leaveOut(what + ": the cluster does not have the kind")
		return nil
	case lenient && apierrors.IsNotFound(err):
		f.leaveOut(what + ": " + err.Error())
		return nil
	}
	return err
}

// overlaid returns the objects of the file, and those of the cluster that they do not replace.
func overlaid[T any, P interface {
	*T
	client.Object
}](cluster, file []T) []T {
	kept := slices.DeleteFunc(slices.Clone(cluster), func(old T) bool {
		return slices.ContainsFunc(file, func(fresh T) bool {
			return P(&old).GetName() == P(&fresh).GetName() && P(&old).GetNamespace() == P(&fresh).GetNamespace()
		})
	})
	return append(kept, file...)
}

// uidOf is the UID of the config of that name in the cluster, so that its jobs are found; empty if there is none.
func (f *previewFacts) uidOf(config *v1beta1.UpgradeConfig) types.UID {
	for i := range f.configs {
		if known := &f.configs[i]; known.Namespace == config.Namespace && known.Name == config.Name {
			return known.UID
		}
	}
	return ""
}

// upgrader returns the upgrader of the config's jobs, or, as unusable, why there is none. An error is one of the way to the cluster.
func (f *previewFacts) upgrader(ctx context.Context, c client.Client, config *v1beta1.UpgradeConfig) (variant upgrader.Upgrader, unusable, err error) {
	job := &config.Spec.JobTemplate.Spec.Config
	for i := range f.upgraders {
		if object := &f.upgraders[i]; object.Name == lifecycle.UpgraderOf(job) {
			variant, err = upgrader.NewCatalogue().Declared(object)
			if err != nil {
				return nil, fmt.Errorf("use Upgrader %s of the file: %w", object.Name, err), nil
			}
			return variant, nil, nil
		}
	}
	var reader client.Reader
	if c != nil {
		reader = c
	}
	variant, err = findUpgrader(ctx, reader, job)
	switch {
	case errors.Is(err, upgrader.ErrUnusable):
		return nil, err, nil
	case apierrors.IsForbidden(err) || meta.IsNoMatchError(err):
		f.leaveOut(fmt.Sprintf("the steps of upgrader %s: %v", lifecycle.UpgraderOf(job), err))
		return nil, nil, nil
	case err != nil:
		return nil, nil, explain("find the upgrader", err)
	}
	return variant, nil, nil
}
