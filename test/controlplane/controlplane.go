// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/appuio/managed-upgrade-operator/test/certificates"
	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// Options says what kind of control plane to start. The zero value is a complete
// one without an audit log, in a temporary folder.
type Options struct {
	// Dir takes the data, keys, logs and kubeconfig files. It is made if need be,
	// has to be empty, and stays. When unset, a temporary folder is used and
	// removed by Stop.
	Dir string

	// Progress is told, in lines, what takes long. Nil keeps silent.
	Progress io.Writer

	// Audit has the API server log every request; see ControlPlane.AuditLog.
	Audit bool

	// CRDs, and those in the files and folders CRDPaths, are installed and served
	// before kube-controller-manager starts. Its garbage collector looks for new
	// kinds only every 30 s, so owners and dependents of a kind that is installed
	// later wait for that, or for RestartControllerManager. The API server holds
	// back a create request for 2 s when its kind is younger than 2 s.
	CRDs     []*apiextensionsv1.CustomResourceDefinition
	CRDPaths []string

	// RequireControllerManager makes Start fail when the programs, chosen by
	// KUBEBUILDER_ASSETS, include no kube-controller-manager. Otherwise the
	// control plane then runs without: no garbage collection, no Jobs' pods, no
	// default service accounts, and deleted namespaces stay Terminating.
	RequireControllerManager bool

	// APIServerArgs are added to the arguments of kube-apiserver, after ours.
	APIServerArgs []string
}

// ControlPlane is a running Kubernetes control plane. Its methods may be called
// from any goroutine.
type ControlPlane struct {
	options Options
	assets  string
	dir     *programs.Folder
	config  *rest.Config
	client  kubernetes.Interface

	authority *certificates.Authority
	ports     ports

	mu                sync.Mutex // guards what follows
	stopped           bool
	etcd              *programs.Process
	apiServer         *programs.Process
	controllerManager *programs.Process // nil when the assets have none

	stopOnce sync.Once
	stopErr  error
}

// Start starts a control plane and returns once it serves requests and its
// controllers run. It lives until Stop is called, ctx ends, or this process dies,
// whichever comes first. Call Stop in any case, as it also waits for the end. On an
// error nothing is left running.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	assets, err := Assets(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	withControllerManager := len(programs.Missing(assets, controllerManagerProgram)) == 0
	if !withControllerManager && options.RequireControllerManager {
		return nil, fmt.Errorf("%s=%s has no executable %s, which is required here: unset it to have the programs built",
			assetsVariable, assets, controllerManagerProgram)
	}
	dir, err := programs.NewFolder(moduleName, options.Dir)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{options: options, assets: assets, dir: dir}
	if err := c.start(ctx, withControllerManager); err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane: %w", err), c.Stop())
	}
	context.AfterFunc(ctx, func() { _ = c.Stop() })
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, withControllerManager bool) error {
	started := time.Now()
	if err := c.ports.lease(); err != nil {
		return err
	}
	if err := c.writeCredentials(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := c.installCRDs(); err != nil {
		return err
	}
	if withControllerManager {
		if err := c.startControllerManager(ctx); err != nil {
			return err
		}
	}
	programs.Report(c.options.Progress, moduleName, "serving at %s after %s, data and logs in %s",
		c.url(), time.Since(started).Round(100*time.Millisecond), c.dir.Path())
	return nil
}

// installCRDs leaves the caller's objects as they are, for use in another Start.
func (c *ControlPlane) installCRDs() error {
	options := envtest.CRDInstallOptions{
		Paths:              c.options.CRDPaths,
		ErrorIfPathMissing: true,
		MaxTime:            programs.ReadyTimeout,
		PollInterval:       programs.ReadyPollInterval,
	}
	for _, crd := range c.options.CRDs {
		options.CRDs = append(options.CRDs, crd.DeepCopy())
	}
	if _, err := envtest.InstallCRDs(c.Config(), options); err != nil {
		return fmt.Errorf("install the custom resource definitions: %w", err)
	}
	return nil
}

// Stop kills all programs and removes the temporary folder. It returns once they
// are gone. Further calls do nothing and return the same result.
func (c *ControlPlane) Stop() error {
	c.stopOnce.Do(func() {
		c.mu.Lock()
		c.stopped = true
		c.mu.Unlock()
		c.stopErr = errors.Join(
			c.controllerManager.Stop(0),
			c.apiServer.Stop(0),
			c.etcd.Stop(0),
			c.ports.release(),
			c.dir.Close(),
		)
	})
	return c.stopErr
}

// Config returns a new client configuration of the administrator, a member of
// system:masters. It limits no request rate.
func (c *ControlPlane) Config() *rest.Config {
	return rest.CopyConfig(c.config)
}

// Kubeconfig returns the path of the administrator's kubeconfig file.
func (c *ControlPlane) Kubeconfig() string {
	return c.path("admin.kubeconfig")
}

// Kubectl returns the path of a kubectl of the control plane's version.
func (c *ControlPlane) Kubectl() string {
	return filepath.Join(c.assets, kubectlProgram)
}

// Dir returns the folder with data, keys, kubeconfig files and logs; the log of
// each program is <name>.log.
func (c *ControlPlane) Dir() string {
	return c.dir.Path()
}

func (c *ControlPlane) path(name string) string {
	return c.dir.Join(name)
}

// launch starts a program, keeps it in the given field, and waits until it is
// ready. The field is that of a program that does not run.
func (c *ControlPlane) launch(ctx context.Context, field **programs.Process, name string, args []string, ready func(context.Context) error) error {
	p, err := c.spawn(field, name, args)
	if err != nil {
		return err
	}
	return p.WaitReady(ctx, ready)
}

// spawn holds the lock, so that no program starts after Stop has begun.
func (c *ControlPlane) spawn(field **programs.Process, name string, args []string) (*programs.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("start %s: the control plane has been stopped", name)
	}
	if (*field).Running() {
		return nil, fmt.Errorf("start %s: it runs already", name)
	}
	p, err := programs.Start(filepath.Join(c.assets, name), c.dir.Path(), args)
	if err != nil {
		return nil, err
	}
	*field = p
	return p, nil
}

// current returns the program in a field, which may be nil.
func (c *ControlPlane) current(field **programs.Process) *programs.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *field
}
