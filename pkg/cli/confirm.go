// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/schedule"
)

// fieldOwner is the name under which the API server records what the plugin writes.
const fieldOwner = client.FieldOwner("oc-managed-upgrade")

// errDeclined says that the user was asked and did not say yes.
var errDeclined = errors.New("nothing was changed: you did not say yes")

// errInterrupted says that the user was asked and ended the program.
var errInterrupted = errors.New("nothing was changed: interrupted")

// confirm asks the user whether to go on, and returns nil if they say yes, or if --yes was given. Without a terminal there is nobody to ask: that is an error.
func (t *tool) confirm(ctx context.Context, question string, yes bool) error {
	if yes {
		return nil
	}
	return ask(ctx, t.In, t.ErrOut, t.terminal(t.In), question)
}

// reply is what was read, and why not all of it.
type reply struct {
	text string
	err  error
}

// ask asks a question that is answered with no unless somebody writes yes. It is over when the context is: then whoever reads goes on reading, and the answer
// counts no more. The program is about to end.
func ask(ctx context.Context, in io.Reader, out io.Writer, terminal bool, question string) error {
	if !terminal {
		return errors.New("nothing was changed: there is no terminal to ask on; give --yes if you are sure")
	}
	fmt.Fprintf(out, "%s [y/N] ", question)
	replies := make(chan reply, 1)
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		replies <- reply{text, err}
	}()
	var given reply
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return errInterrupted
	case given = <-replies:
	}
	if given.err != nil && given.text == "" {
		fmt.Fprintln(out)
		return fmt.Errorf("nothing was changed: read the answer: %w", given.err)
	}
	switch strings.ToLower(strings.TrimSpace(given.text)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}

// explainWrite explains why the API server did not take a change. The act is half a sentence: "suspend UpgradeConfig a/b".
func explainWrite(act string, err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s: there is one of that name already", act)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: somebody else changed it in the meantime: look again, and repeat", act)
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return fmt.Errorf("%s: the cluster refuses it: %w", act, err)
	}
	return explain(act, err)
}

// holderOf returns the job that stands on an object, as namespace/name, as who holds it; nil if it is gone. Where that cannot be found out the text says why.
func holderOf(ctx context.Context, c client.Reader, key string) (job *v1beta1.UpgradeJob, unknown string, err error) {
	namespace, name, isJob := strings.Cut(key, "/")
	if !isJob {
		return nil, fmt.Sprintf("%q is no UpgradeJob", key), nil
	}
	job = &v1beta1.UpgradeJob{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("you may not look whether UpgradeJob %s has ended", key), nil
	case err != nil:
		return nil, "", explain("get UpgradeJob "+key, err)
	}
	return job, "", nil
}

// occupied says why the cluster is not free for the job, as namespace/name: another one has its lock, or it is being updated by somebody else. Empty if it is free.
func occupied(ctx context.Context, c client.Reader, cv *configv1.ClusterVersion, job string) (string, error) {
	holder := cv.Annotations[v1beta1.UpgradeJobAnnotation]
	if holder != "" && holder != job {
		other, unknown, err := holderOf(ctx, c, holder)
		switch {
		case err != nil:
			return "", err
		case unknown != "":
			return fmt.Sprintf("the cluster is locked by %q (%s)", holder, unknown), nil
		case other != nil && (!other.Status.Phase.Finished() || len(other.Finalizers) > 0):
			return "the cluster is locked by UpgradeJob " + holder, nil
		}
	}
	return "", nil
}

// beingUpdated says that the cluster is on its way to a release; empty if it is not.
func beingUpdated(cv *configv1.ClusterVersion) string {
	if release, is := openshift.Updating(cv); is {
		return fmt.Sprintf("the cluster is being updated to %s", release)
	}
	return ""
}

// server is the address of the cluster's API; empty if that is not known.
func (t *tool) server() string {
	config, err := t.flags.ToRESTConfig()
	if err != nil {
		return ""
	}
	return config.Host
}

// location is the time zone of the user.
func (t *tool) location() *time.Location { return t.clock.Now().Location() }

// moment is a time for people: in the zone, with its name.
func moment(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("Mon 2006-01-02 15:04 MST")
}

// utc is a time for programs.
func utc(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// columns prints rows of cells in columns. A last cell that is empty leaves no blanks.
func columns(out io.Writer, rows [][]string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.Join(strings.Fields(clean(cell)), " ")
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// orDash is the text, or a dash where there is none, so that columns can be told apart.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// localZone is the location of a schedule that leaves the choice to the operator.
const localZone = "Local"

// parseSchedule reads a schedule as the operator does. Local, which is the zone of the operator's process, counts as UTC here: that is what its image has.
func parseSchedule(spec v1beta1.UpgradeConfigSchedule) (*schedule.Schedule, error) {
	location := spec.Location
	if location == "" || location == localZone {
		location = "UTC"
	}
	return schedule.Parse(spec.Cron, spec.ISOWeek, location)
}
