package apply

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatLeavesGitLeavesTheClusterAndThenTheInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v")), soon)
		c.take()
		report := e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		assert.Equal(t, []string{"DELETE /api/v1/namespaces/web/configmaps/b"}, c.take())
		assert.Nil(t, c.get("/ConfigMap/web/b"))
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
		assert.True(t, report.AddOns[0].Quiet())
	})
}

func TestADeselectedAddOnLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v"), "old", configMapYAML("b", "k: v")), soon)
		report := e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		assert.Nil(t, c.get("/ConfigMap/web/b"))
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
		require.Len(t, report.AddOns, 1, "it is not told of any more")
	})
}

func TestADeletionThatDoesNotFinishIsNamedSentOnceAndHindersNobody(t *testing.T) {
	const key = "/ConfigMap/web/b"
	synctest.Test(t, func(t *testing.T) { // B17
		c := startCluster(t)
		e := c.engine(t)
		both := wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v"))
		e.settle(t, both, soon)
		c.edit("someone", key, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/blocker"}) })
		c.take()
		// The passes follow each other before the watch has said anything.
		c.mute(true)
		one := wants(t, "shop", configMapYAML("a", "k: w"), "more", configMapYAML("c", "k: v"))
		for range 3 {
			_, err := e.Pass(t.Context(), one)
			require.NoError(t, err)
		}
		c.mute(false)
		report := e.settle(t, one, time.Hour)
		assert.Len(t, on(c.take(), "/b"), 1)
		assert.Equal(t, map[string]any{"k": "v"}, c.data("/ConfigMap/web/c"))
		require.Len(t, report.AddOns[0].Removing, 1)
		assert.Contains(t, report.AddOns[0].Removing[0].What, "example.com/blocker")
		assert.Contains(t, c.inventory(t)["shop-0"], "/ConfigMap/web/b\n", "it is not gone yet")

		// It is wanted again while it is going.
		report = e.settle(t, both, time.Hour)
		require.Len(t, report.AddOns[0].Waiting, 1)
		assert.Contains(t, report.AddOns[0].Waiting[0].What, "example.com/blocker")
		assert.Empty(t, on(c.take(), "/b"))
		uid := c.get(key).GetUID()
		c.edit("someone", key, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		e.settle(t, both, soon)
		require.NotNil(t, c.get(key))
		assert.NotEqual(t, uid, c.get(key).GetUID())
	})
}

func TestAReleasedObjectStaysWithoutUs(t *testing.T) {
	const key = "/ConfigMap/web/b"
	for name, setUp := range map[string]func(c *cluster){
		"in sight": func(*cluster) {},
		"without our label": func(c *cluster) {
			c.edit("someone", key, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				released := strings.Replace(configMapYAML("b", "k: v"), "namespace: web", "namespace: web, annotations: {fleetling.dev/prune: disabled}", 1)
				e := c.engine(t)
				e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+released), soon)
				uid := c.get(key).GetUID()
				setUp(c)
				one := wants(t, "shop", configMapYAML("a", "k: v"))
				report := e.settle(t, one, soon)
				object := c.get(key)
				require.NotNil(t, object)
				assert.Equal(t, uid, object.GetUID())
				assert.NotContains(t, object.GetLabels(), AddOnLabel)
				assert.NotContains(t, managers(object), Manager)
				assert.Equal(t, map[string]any{"k": "v"}, c.data(key))
				assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
				assert.True(t, report.AddOns[0].Quiet())
				assert.Empty(t, report.Strays)
			})
		})
	}
}

func TestAnObjectWithoutOurLabelIsReadBeforeItIsDeleted(t *testing.T) {
	const key = "/ConfigMap/web/b"
	cases := map[string]struct {
		strip func(c *cluster, u *unstructured.Unstructured)
		gone  bool
	}{
		"ours but for the label": {func(*cluster, *unstructured.Unstructured) {}, true},
		"taken over by somebody": {func(c *cluster, u *unstructured.Unstructured) {
			c.objects[key].SetManagedFields(nil)
			u.SetManagedFields(nil)
		}, false},
		"consent was asked for since": {func(_ *cluster, u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{PruneAnnotation: PruneConfirm})
		}, false},
		"and it has a finalizer": {func(_ *cluster, u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/blocker"}) }, true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				first := c.engine(t)
				first.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v")), soon)
				first.stop()
				c.edit("someone", key, func(u *unstructured.Unstructured) {
					u.SetLabels(nil)
					test.strip(c, u)
				})
				c.take()
				e := c.engine(t)
				one := wants(t, "shop", configMapYAML("a", "k: v"))
				e.settle(t, one, time.Minute)
				if object := c.get(key); object != nil && len(object.GetFinalizers()) > 0 {
					require.NotNil(t, object.GetDeletionTimestamp())
					assert.Contains(t, c.inventory(t)["shop-0"], key)
					c.edit("someone", key, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
					e.settle(t, one, time.Minute)
					assert.NotContains(t, c.inventory(t)["shop-0"], key)
				}
				assert.Equal(t, test.gone, c.get(key) == nil)
				assert.Len(t, on(c.take(), "/b"), map[bool]int{true: 1}[test.gone])
			})
		})
	}
}

func TestAHeldObjectThatSomebodyDeletedNeedsNoConsentAnyMore(t *testing.T) {
	namespace := "{apiVersion: v1, kind: Namespace, data: {k: v}, metadata: {name: old}}\n---\n"
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+namespace), soon)
		one := wants(t, "shop", configMapYAML("a", "k: v"))
		report := e.settle(t, one, time.Hour)
		require.NotNil(t, report.AddOns[0].Hold)
		require.NotNil(t, c.get("/Namespace//old"))

		c.edit("someone", "/Namespace//old", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		for range 2 {
			report = e.settle(t, one, time.Hour)
			require.NotNil(t, report.AddOns[0].Hold, "out of sight is not gone")
			require.NotNil(t, c.get("/Namespace//old"))
		}

		c.remove("/Namespace//old")
		e.stop() // nothing watches it any more
		report = c.engine(t).settle(t, one, soon)
		assert.Nil(t, report.AddOns[0].Hold)
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
	})
}

func TestObjectsThatNeverCameAboutAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		var many strings.Builder
		for i := range 10 {
			many.WriteString(configMapYAML("b"+string(rune('0'+i)), "k: v"))
		}
		c.deny = func(_, path string) *apierrors.StatusError {
			if strings.Contains(path, "/configmaps/b") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "b", assert.AnError)
			}
			return nil
		}
		e := c.engine(t)
		report := e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+many.String()), soon)
		require.Len(t, report.AddOns[0].Failures, 10)
		require.Equal(t, 11, report.AddOns[0].Inventory)
		c.deny = nil
		report = e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		assert.Nil(t, report.AddOns[0].Hold)
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
	})
}

func TestAMoveBetweenAddOnsKeepsTheObject(t *testing.T) {
	const key = "/ConfigMap/web/x"
	stay := map[string]string{"one": configMapYAML("a", "k: v"), "two": configMapYAML("b", "k: v")}
	moving := configMapYAML("x", "k: v")
	for name, way := range map[string][2]string{"to a later one": {"one", "two"}, "to an earlier one": {"two", "one"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // B12, P5
				c := startCluster(t)
				in := func(owner string) Wanted {
					yaml := map[string]string{"one": stay["one"], "two": stay["two"]}
					yaml[owner] += moving
					return wants(t, "one", yaml["one"], "two", yaml["two"])
				}
				e := c.engine(t)
				e.settle(t, in(way[0]), soon)
				uid := c.get(key).GetUID()
				c.take()
				report := e.settle(t, in(way[1]), soon)
				assert.Equal(t, []string{"PATCH /api/v1/namespaces/web/configmaps/x force=true"}, c.take())
				assert.Equal(t, uid, c.get(key).GetUID())
				assert.Equal(t, way[1], c.get(key).GetLabels()[AddOnLabel])
				assert.NotContains(t, c.inventory(t)[way[0]+"-0"], key)
				assert.Contains(t, c.inventory(t)[way[1]+"-0"], key)
				assert.Empty(t, report.AddOns[0].Repaired)
				assert.Empty(t, report.AddOns[1].Repaired)
			})
		})
	}
}

func TestAnAddOnThatIsNotCompleteDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // F1, P1
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v")+configMapYAML("c", "k: v"), "other", configMapYAML("d", "k: v")+configMapYAML("e", "k: v")), soon)
		c.deny = func(method, path string) *apierrors.StatusError {
			if method == http.MethodPatch && strings.HasSuffix(path, "/b") {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "b", nil)
			}
			return nil
		}
		uid := c.get("/ConfigMap/web/b").GetUID()
		c.take()
		next := wants(t, "shop", configMapYAML("a", "k: w")+configMapYAML("b", "k: w"), "other", configMapYAML("d", "k: v"))
		report := e.settle(t, next, time.Hour)
		require.Len(t, report.AddOns[0].Failures, 1)
		assert.Equal(t, "shop/b.yaml", report.AddOns[0].Failures[0].File)
		assert.Equal(t, map[string]any{"k": "w"}, c.data("/ConfigMap/web/a"), "the good ones go on")
		assert.Equal(t, uid, c.get("/ConfigMap/web/b").GetUID(), "an invalid object is never answered with a delete")
		assert.NotNil(t, c.get("/ConfigMap/web/c"), "nothing is pruned of an add-on that failed")
		assert.Nil(t, c.get("/ConfigMap/web/e"), "another add-on is not held up")
		assert.Equal(t, []Waiting{{ID{Kind: "ConfigMap", Namespace: "web", Name: "c"}, "its add-on to be applied without a failure"}}, report.AddOns[0].Removing)
		tries := on(c.take(), "/b")
		assert.Greater(t, len(tries), 3)
		assert.Less(t, len(tries), 25, "an hour of backoff")

		c.deny = nil
		e.RetryNow()
		e.settle(t, next, soon)
		assert.Nil(t, c.get("/ConfigMap/web/c"))
	})
}

func TestARefusedDeleteIsPacedAndHindersNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration cluster")
		e := c.engine(t)
		hook := "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook}}\n---\n"
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v")+configMapYAML("c", "k: v")), soon)
		c.deny = func(method, path string) *apierrors.StatusError {
			if method == http.MethodDelete && strings.HasSuffix(path, "/b") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "b", assert.AnError)
			}
			return nil
		}
		c.take()
		report := e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), time.Hour)
		require.Len(t, report.AddOns[0].Failures, 1)
		assert.Equal(t, PruneFailed, report.AddOns[0].Failures[0].Reason)
		assert.Nil(t, c.get("/ConfigMap/web/c"))
		assert.Contains(t, c.inventory(t)["shop-0"], "/ConfigMap/web/b\n", "a denied delete stays in the inventory")
		tries := on(c.take(), "/b")
		assert.Greater(t, len(tries), 3)
		assert.Less(t, len(tries), 25, "an hour of backoff")

		// Between two tries of the delete, new guards and other deletions go on.
		report = e.settle(t, wants(t, "shop", hook), time.Millisecond)
		assert.NotNil(t, c.get("admissionregistration.k8s.io/ValidatingWebhookConfiguration//hook"))
		assert.Nil(t, c.get("/ConfigMap/web/a"))
		assert.Len(t, report.AddOns[0].Failures, 1)
		assert.Empty(t, on(c.take(), "/b"))

		// It is wanted again: nothing waits for the delete any more.
		report = e.settle(t, wants(t, "shop", hook+configMapYAML("b", "k: v")), 2*time.Hour)
		assert.Empty(t, report.AddOns[0].Failures)
		assert.NotNil(t, c.get("/ConfigMap/web/b"))
	})
}

func TestADeleteMeansOneIncarnation(t *testing.T) {
	const key = "/ConfigMap/web/b"
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v")), soon)
		uid := c.get(key).GetUID()
		// Between plan and delete somebody makes the object anew.
		c.deny = func(method, path string) *apierrors.StatusError {
			if method == http.MethodDelete && strings.HasSuffix(path, "/b") && c.objects[key].GetUID() == uid {
				delete(c.objects, key)
				next := blank(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
				next.SetNamespace("web")
				next.SetName("b")
				setData(next, "k", "new")
				_, err := c.put(c.targetOf(key), next, "someone")
				require.NoError(t, err)
			}
			return nil
		}
		report, err := e.Pass(t.Context(), wants(t, "shop", configMapYAML("a", "k: v")))
		require.NoError(t, err)
		assert.Empty(t, report.AddOns[0].Changes.Entries, "no deletion is told of that was none")
		assert.Empty(t, report.AddOns[0].Failures)
		require.NotNil(t, c.get(key))
		assert.Equal(t, map[string]any{"k": "new"}, c.data(key))
		c.deny = nil
		// The new one is a stranger's.
		synctest.Wait()
		e.stop()
		c.engine(t).settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		assert.Equal(t, map[string]any{"k": "new"}, c.data(key))
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
	})
}

func TestADeleteOfWhatIsGoneIsDone(t *testing.T) {
	const key = "/ConfigMap/web/b"
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v")), soon)
		c.mu.Lock()
		delete(c.objects, key) // and the watch has not said so
		c.mu.Unlock()
		report, err := e.Pass(t.Context(), wants(t, "shop", configMapYAML("a", "k: v")))
		require.NoError(t, err)
		assert.Empty(t, report.AddOns[0].Changes.Entries)
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
	})
}

func TestStagesAreTakenBackInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration cluster", "v1 ServiceAccount namespaced")
		hook := "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook}}\n---\n"
		account := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: web}}\n---\n"
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v"), "old", hook+account+configMapYAML("b", "k: v")), soon)
		applied := c.take()
		assert.Less(t, index(applied, "/sa"), index(applied, "/b"))
		assert.Less(t, index(applied, "/b"), index(applied, "/hook"))
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		assert.Equal(t, []string{
			"DELETE /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook",
			"DELETE /api/v1/namespaces/web/configmaps/b", "DELETE /api/v1/namespaces/web/serviceaccounts/sa",
		}, c.take())
	})
}

func TestAddOnsAreTakenBackInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		pair := func(name string) string { return configMapYAML(name, "k: v") + configMapYAML(name+"-old", "k: v") }
		e.settle(t, wants(t, "one", pair("a"), "two", pair("b"), "y", configMapYAML("c", "k: v"), "z", configMapYAML("d", "k: v")), soon)
		c.take()
		e.settle(t, wants(t, "one", configMapYAML("a", "k: v"), "two", configMapYAML("b", "k: v")), soon)
		var names []string
		for _, write := range c.take() {
			names = append(names, strings.TrimPrefix(write, "DELETE /api/v1/namespaces/web/configmaps/"))
		}
		assert.Equal(t, []string{"d", "c", "b-old", "a-old"}, names)
	})
}

func index(writes []string, end string) int {
	return slices.IndexFunc(writes, func(w string) bool { return strings.HasSuffix(strings.Fields(w)[1], end) })
}
