// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// ports are those of one control plane.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager *programs.Port
}

func (p *ports) all() []**programs.Port {
	return []**programs.Port{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager}
}

func (p *ports) lease() error {
	for _, field := range p.all() {
		port, err := programs.LeasePort()
		if err != nil {
			return err
		}
		*field = port
	}
	return nil
}

// release gives back the ports that were leased.
func (p *ports) release() error {
	var errs []error
	for _, field := range p.all() {
		errs = append(errs, (*field).Release())
	}
	return errors.Join(errs...)
}
