// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

// nodeAnswersMemory is how long the answer about a node is kept after somebody asked for it last. It is longer than any
// answer stands.
const nodeAnswersMemory = time.Minute

// nodeAnswers share the answers to a question that is asked of each of many nodes. The zero value has not been asked yet.
// It may be used from several goroutines. Nodes come and go: one that nobody asks for any more is forgotten with the
// next question.
type nodeAnswers[T any] struct {
	mutex  sync.Mutex
	byNode map[string]*nodeAnswer[T]
}

type nodeAnswer[T any] struct {
	question poll.Question[T]
	wanted   time.Time
}

// get returns an answer about the node that is at most maxAge old, which must be less than nodeAnswersMemory. If there is
// none it asks, as poll.Question does.
func (a *nodeAnswers[T]) get(ctx context.Context, node string, now time.Time, maxAge time.Duration, ask func(context.Context) (T, error)) (T, error) {
	return a.about(node, now).Get(ctx, now, maxAge, ask)
}

func (a *nodeAnswers[T]) about(node string, now time.Time) *poll.Question[T] {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	// Whoever waits for the answer of one that is forgotten gets it all the same.
	maps.DeleteFunc(a.byNode, func(_ string, answer *nodeAnswer[T]) bool {
		return now.Sub(answer.wanted).Abs() >= nodeAnswersMemory
	})
	answer := a.byNode[node]
	if answer == nil {
		if a.byNode == nil {
			a.byNode = map[string]*nodeAnswer[T]{}
		}
		answer = &nodeAnswer[T]{}
		a.byNode[node] = answer
	}
	answer.wanted = now
	return &answer.question
}
