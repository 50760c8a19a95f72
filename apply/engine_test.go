package apply

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// settle makes passes as the agent does, when there is news or at the time that
// the last one named, until there is nothing but the backstop, or until the time is over.
func (e *testEngine) settle(t *testing.T, wanted Wanted, limit time.Duration) Report {
	t.Helper()
	end := time.Now().Add(limit)
	for range 1000 {
		select {
		case <-e.changed:
		default:
		}
		report, err := e.Pass(t.Context(), wanted)
		require.NoError(t, err)
		synctest.Wait()
		wait := time.Until(end)
		if report.Again > 0 {
			wait = min(wait, report.Again)
		}
		select {
		case <-e.changed:
			continue
		default:
		}
		if report.Again >= verifyEvery || wait <= 0 || !time.Now().Before(end) {
			return report
		}
		select {
		case <-e.changed:
		case <-time.After(wait):
		}
	}
	require.Fail(t, "a thousand passes, and no end")
	return Report{}
}

// soon is long enough for all that does not wait for a retry.
const soon = time.Second

// startCluster is a cluster with a namespace to put things into. It lives in the
// bubble of a test, which has its own time.
func startCluster(t *testing.T, kinds ...string) *cluster {
	t.Helper()
	c := newCluster(kinds...)
	c.edit("installer", "/Namespace//fleetling-system", func(*unstructured.Unstructured) {})
	c.edit("installer", "/Namespace//web", func(*unstructured.Unstructured) {})
	return c
}

// wants is a wanted state of add-ons, each as its name and its YAML.
func wants(t *testing.T, addOns ...string) Wanted {
	t.Helper()
	wanted := Wanted{Whole: true}
	for i := 0; i < len(addOns); i += 2 {
		objects, failures := readObjects(t, addOns[i], addOns[i+1])
		wanted.AddOns = append(wanted.AddOns, AddOn{Name: addOns[i], Objects: objects, Failures: failures, Whole: true})
	}
	return wanted
}

func configMapYAML(name, data string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: web}, data: {" + data + "}}\n---\n"
}

// inventory reads what the cluster says that each add-on holds.
func (c *cluster) inventory(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, object := range c.objects {
		if name, is := strings.CutPrefix(key, "/ConfigMap/fleetling-system/"+inventoryPrefix); is {
			text, _, err := unstructured.NestedString(object.Object, "data", inventoryKey)
			require.NoError(t, err)
			all[name] = text
		}
	}
	return all
}

func (c *cluster) data(key string) map[string]any {
	object := c.get(key)
	if object == nil {
		return nil
	}
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	return data
}

func managers(u *unstructured.Unstructured) map[string]string {
	all := map[string]string{}
	for _, entry := range u.GetManagedFields() {
		all[entry.Manager] = string(entry.Operation)
	}
	return all
}

func TestOneRequestPerNewObjectAndNoneForAnUnchangedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v"))
		report := e.settle(t, wanted, soon)
		assert.Equal(t, []string{
			"PATCH /api/v1/namespaces/web/configmaps/a force=false", "PATCH /api/v1/namespaces/web/configmaps/b force=false",
		}, sorted(c.take()))
		require.Len(t, report.AddOns, 1)
		shop := report.AddOns[0]
		assert.True(t, shop.Applied() && shop.Healthy() && shop.Quiet())
		assert.Equal(t, 2, shop.Ready)
		assert.Equal(t, 2, shop.Inventory)
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n/ConfigMap/web/b\n"}, c.inventory(t))
		assert.Equal(t, "shop", c.get("/ConfigMap/web/a").GetLabels()[AddOnLabel])

		e.settle(t, wanted, time.Hour)
		assert.Empty(t, c.writes, "a quiet cluster costs no write, nor one of the inventory")
	})
}

func TestARestartAppliesOnceAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v"))
		first := c.engine(t)
		first.settle(t, wanted, soon)
		first.stop()
		before := c.get("/ConfigMap/web/a")
		c.take()

		report := c.engine(t).settle(t, wanted, soon)
		assert.Equal(t, []string{"PATCH /api/v1/namespaces/web/configmaps/a force=true"}, c.take())
		assert.Equal(t, before.GetResourceVersion(), c.get("/ConfigMap/web/a").GetResourceVersion())
		assert.Empty(t, report.AddOns[0].Repaired)
	})
}

func TestWhatAPassDidIsInItsReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		pass := func(wanted Wanted) AddOnReport {
			report, err := e.Pass(t.Context(), wanted)
			require.NoError(t, err)
			synctest.Wait()
			return report.AddOns[0]
		}
		actions := func(r AddOnReport) map[string]string {
			all := map[string]string{}
			for _, entry := range r.Changes.Entries {
				all[entry.Subject] = string(entry.Action)
			}
			return all
		}
		old := wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v"))
		assert.Equal(t, map[string]string{"ConfigMap/web/a": "created", "ConfigMap/web/b": "created"}, actions(pass(old)))
		assert.Empty(t, actions(pass(old)))
		next := wants(t, "shop", configMapYAML("a", "k: w"))
		assert.Equal(t, map[string]string{"ConfigMap/web/a": "configured", "ConfigMap/web/b": "deleted"}, actions(pass(next)))
		same := wants(t, "shop", configMapYAML("a", "'k': \"w\""))
		assert.Empty(t, actions(pass(same)), "other bytes, same object")
	})
}

func TestDriftIsRepairedByOneRequest(t *testing.T) {
	const key, path = "/ConfigMap/web/a", "PATCH /api/v1/namespaces/web/configmaps/a force=true"
	cases := map[string]func(c *cluster){
		"a value was changed (B04)": func(c *cluster) {
			c.edit("kubectl-edit", key, func(u *unstructured.Unstructured) { setData(u, "k", "x") })
		},
		"a value was taken by force": func(c *cluster) { c.applyAs("someone", key, true, map[string]any{"k": "x"}) },
		"it was deleted":             func(c *cluster) { c.remove(key) },
		"our label was taken off": func(c *cluster) {
			c.edit("kubectl-label", key, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		},
		"it was made anew with other content": func(c *cluster) {
			c.remove(key)
			c.edit("someone", key, func(u *unstructured.Unstructured) { setData(u, "k", "x") })
		},
	}
	for name, drift := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				e := c.engine(t)
				wanted := wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v"))
				e.settle(t, wanted, soon)
				c.take()
				drift(c)
				synctest.Wait()
				require.Len(t, e.changed, 1, "the watch says so")
				report, err := e.Pass(t.Context(), wanted)
				require.NoError(t, err)
				assert.Equal(t, []ID{{Kind: "ConfigMap", Namespace: "web", Name: "a"}}, report.AddOns[0].Repaired)
				assert.Equal(t, path, c.take()[0])
				e.settle(t, wanted, time.Hour)
				assert.Equal(t, map[string]any{"k": "v"}, c.data(key))
				assert.Equal(t, "shop", c.get(key).GetLabels()[AddOnLabel])
				assert.Empty(t, c.take())
			})
		})
	}
}

func setData(u *unstructured.Unstructured, key, value string) {
	if err := unstructured.SetNestedField(u.Object, value, "data", key); err != nil {
		panic(err)
	}
}

func TestAStrangersObjectIsLeftAsItWasAndItsOwnerNamed(t *testing.T) {
	const key = "/ConfigMap/web/a"
	cases := map[string]struct {
		setUp func(c *cluster)
		owner string
		// left are the writes on the object: with values of its own it takes an
		// apply to find its manager, and one to give back.
		left int
	}{
		"another manager has another value": {func(c *cluster) { c.applyAs("someone", key, false, map[string]any{"k": "x"}) }, `"someone"`, 1},
		"Flux has the same values":          {func(c *cluster) { c.applyAs("kustomize-controller", key, false, map[string]any{"k": "v"}) }, "Flux (kustomize-controller)", 2},
		"Flux has other keys":               {func(c *cluster) { c.applyAs("kustomize-controller", key, false, map[string]any{"other": "v"}) }, "Flux (kustomize-controller)", 2},
		"Argo CD has the same values":       {func(c *cluster) { c.applyAs("argocd-controller", key, false, map[string]any{"k": "v"}) }, "Argo CD (argocd-controller)", 2},
		"Helm has the same values": {func(c *cluster) {
			c.edit("Helm", key, func(u *unstructured.Unstructured) { setData(u, "k", "v") })
		}, "Helm", 2},
		"Flux has another value": {func(c *cluster) { c.applyAs("kustomize-controller", key, false, map[string]any{"k": "x"}) }, `"kustomize-controller"`, 1},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				test.setUp(c)
				before := c.get(key)
				e := c.engine(t)
				wanted := wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v"))
				report := e.settle(t, wanted, soon)
				shop := report.AddOns[0]
				require.Len(t, shop.Failures, 1)
				assert.Equal(t, OwnedByOther, shop.Failures[0].Reason)
				assert.Contains(t, shop.Failures[0].Message, test.owner)
				assert.Equal(t, "shop/a.yaml", shop.Failures[0].File)
				assert.Equal(t, 1, shop.Ready, "the others are applied")
				after := c.get(key)
				assert.Empty(t, cmp.Diff(unmanaged(before), unmanaged(after)), "-before +after")
				assert.NotContains(t, managers(after), Manager)
				writes := on(c.take(), "/a")
				assert.Len(t, writes, test.left)

				e.RetryNow()
				e.settle(t, wanted, soon)
				if test.left > 1 {
					assert.Empty(t, on(c.take(), "/a"), "its owner is asked before it is written to again")
				}
				// The owner lets it go, and it is taken.
				c.remove(key)
				e.settle(t, wanted, time.Hour)
				assert.Equal(t, map[string]any{"k": "v"}, c.data(key))
			})
		})
	}
}

func TestOurUnfinishedPartInAnObjectOfFluxIsGivenBackAndNotForced(t *testing.T) {
	const key = "/ConfigMap/web/a"
	for name, value := range map[string]string{"with equal values": "v", "with another value by now": "x"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				c.applyAs("kustomize-controller", key, false, map[string]any{"k": "v"})
				// The process dies between its apply and the one that gives back.
				c.crash = func(int, bool) bool { return len(on(c.writes, "/a")) == 1 }
				wanted := wants(t, "shop", configMapYAML("a", "k: v"))
				first := c.engine(t)
				_, err := first.Pass(t.Context(), wanted)
				require.Error(t, err)
				first.stop()
				c.crash = nil
				require.Contains(t, managers(c.get(key)), Manager)
				c.applyAs("kustomize-controller", key, true, map[string]any{"k": value})

				report := c.engine(t).settle(t, wanted, soon)
				assert.Equal(t, OwnedByOther, report.AddOns[0].Failures[0].Reason)
				assert.Equal(t, map[string]any{"k": value}, c.data(key))
				assert.Equal(t, map[string]string{"kustomize-controller": "Apply"}, managers(c.get(key)))
				assert.Empty(t, c.get(key).GetLabels())
			})
		})
	}
}

func TestAConflictOnAnObjectWithOurFieldsIsReclaimed(t *testing.T) {
	const key = "/ConfigMap/web/a"
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v, l: v"))
		first := c.engine(t)
		first.settle(t, wanted, soon)
		first.stop()
		c.remove("/ConfigMap/fleetling-system/fleetling-inventory-shop-0")
		c.applyAs("someone", key, true, map[string]any{"k": "x"})
		c.take()

		c.engine(t).settle(t, wanted, soon)
		assert.Equal(t, []string{
			"PATCH /api/v1/namespaces/web/configmaps/a force=false", "PATCH /api/v1/namespaces/web/configmaps/a force=true",
		}, c.take())
		assert.Equal(t, map[string]any{"k": "v", "l": "v"}, c.data(key))
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
	})
}

func TestWhatTheAgentWasInstalledWithIsTakenFromItsInstaller(t *testing.T) {
	const key = "/ConfigMap/web/a"
	cameWithUs := func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"app.kubernetes.io/part-of": "fleetling"})
		setData(u, "k", "old")
		setData(u, "legacy", "v")
	}
	for name, manager := range map[string]string{"Cluster API": "manager", "kubectl": "kubectl-client-side-apply", "Flux": "kustomize-controller"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				c.edit(manager, key, cameWithUs)
				uid := c.get(key).GetUID()
				report := c.engine(t).settle(t, wants(t, "shop", configMapYAML("a", "k: new")), soon)
				assert.Equal(t, uid, c.get(key).GetUID())
				if name == "Flux" {
					require.Len(t, report.AddOns[0].Failures, 1)
					assert.Equal(t, OwnedByOther, report.AddOns[0].Failures[0].Reason)
					assert.Equal(t, map[string]any{"k": "old", "legacy": "v"}, c.data(key))
					return
				}
				assert.Empty(t, report.AddOns[0].Failures)
				assert.Equal(t, map[string]any{"k": "new"}, c.data(key), "and what Git does not want is gone")
				assert.Equal(t, map[string]string{Manager: "Apply"}, managers(c.get(key)))
			})
		})
	}
}

func TestLeftoversOfKubectlAreTakenOverOnce(t *testing.T) {
	const key = "/ConfigMap/web/a"
	cases := map[string]func(c *cluster){ // B03
		"of a client-side apply": func(c *cluster) {
			c.edit("kubectl-client-side-apply", key, func(u *unstructured.Unstructured) {
				setData(u, "k", "v")
				setData(u, "legacy", "v")
			})
		},
		"of a server-side apply": func(c *cluster) {
			c.applyAs("kubectl", key, false, map[string]any{"k": "v", "legacy": "v"})
		},
	}
	for name, setUp := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				setUp(c)
				uid := c.get(key).GetUID()
				<-time.After(time.Minute) // entries are in the order of their times
				e := c.engine(t)
				wanted := wants(t, "shop", configMapYAML("a", "k: v, legacy: v"))
				report := e.settle(t, wanted, soon)
				require.True(t, report.AddOns[0].Applied())
				assert.Equal(t, map[string]string{Manager: "Apply"}, managers(c.get(key)))
				assert.Equal(t, []string{
					"PATCH /api/v1/namespaces/web/configmaps/a force=false", "PATCH /api/v1/namespaces/web/configmaps/a",
					"PATCH /api/v1/namespaces/web/configmaps/a force=true",
				}, c.take())
				e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
				assert.Equal(t, map[string]any{"k": "v"}, c.data(key), "a key that leaves Git leaves the cluster")
				assert.Equal(t, uid, c.get(key).GetUID())
				assert.Len(t, c.take(), 1)
				e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), time.Hour)
				assert.Empty(t, c.take())
			})
		})
	}
}

func TestAStrayKeyThatKubectlAddedGoesWithTheNextApply(t *testing.T) {
	const key = "/ConfigMap/web/a"
	synctest.Test(t, func(t *testing.T) { // B03
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		c.edit("kubectl-edit", key, func(u *unstructured.Unstructured) { setData(u, "foo", "x") })
		synctest.Wait()
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		assert.Equal(t, map[string]any{"k": "v", "foo": "x"}, c.data(key), "a field that we do not set is no drift")
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: w")), soon)
		assert.Equal(t, map[string]any{"k": "w"}, c.data(key))
	})
}

func TestAnotherWriterDuringATakeOverIsNoFailure(t *testing.T) {
	const key = "/ConfigMap/web/a"
	for name, races := range map[string]int{"once": 1, "all the time": takeOverTries} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				c.edit("kubectl-create", key, func(u *unstructured.Unstructured) { setData(u, "k", "v") })
				raced := 0
				c.deny = func(method, path string) *apierrors.StatusError {
					if len(on(c.writes, "/a")) >= 2 && raced < races && method == http.MethodPatch && strings.HasSuffix(path, "/a") {
						raced++
						return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", assert.AnError)
					}
					return nil
				}
				e := c.engine(t)
				report := e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
				require.Equal(t, races, raced)
				assert.True(t, report.AddOns[0].Applied())
				if races == takeOverTries {
					require.Contains(t, managers(c.get(key)), "kubectl-create", "left for the next apply")
					e.settle(t, wants(t, "shop", configMapYAML("a", "k: w")), soon)
				}
				assert.Equal(t, map[string]string{Manager: "Apply"}, managers(c.get(key)))
			})
		})
	}
}

func TestARenamedKeyOfStringDataLeavesTheSecret(t *testing.T) {
	secret := func(data string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: web}, " + data + "}\n---\n"
	}
	synctest.Test(t, func(t *testing.T) { // B03
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", secret("stringData: {username: me, password: x}")), soon)
		assert.Equal(t, map[string]any{"username": "bWU=", "password": "eA=="}, c.data("/Secret/web/s"))
		e.settle(t, wants(t, "shop", secret("stringData: {username1: me, password: x}")), soon)
		assert.Equal(t, map[string]any{"username1": "bWU=", "password": "eA=="}, c.data("/Secret/web/s"))
		version := c.get("/Secret/web/s").GetResourceVersion()
		e.settle(t, wants(t, "shop", secret("data: {username1: bWU=, password: eA==}")), soon)
		assert.Equal(t, version, c.get("/Secret/web/s").GetResourceVersion(), "the same, written otherwise")
	})
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }

// on are the writes whose path ends so.
func on(writes []string, end string) []string {
	var all []string
	for _, w := range writes {
		path := strings.Fields(w)[1]
		if strings.HasSuffix(path, end) {
			all = append(all, w)
		}
	}
	return all
}

// unmanaged is an object without what every write changes.
func unmanaged(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	return u.Object
}
