package apply

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	hookYAML = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook}, data: {k: v}}\n---\n"
	hookKind = "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration cluster"
	hookKey  = "admissionregistration.k8s.io/ValidatingWebhookConfiguration//hook"
)

// denying refuses the applies of paths that end so.
func denying(ends ...string) func(method, path string) *apierrors.StatusError {
	return func(method, path string) *apierrors.StatusError {
		for _, end := range ends {
			if method == http.MethodPatch && strings.HasSuffix(path, end) {
				return apierrors.NewForbidden(schema.GroupResource{}, end, assert.AnError)
			}
		}
		return nil
	}
}

func TestGuardsWaitForTheRestOfTheirAddOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, hookKind)
		c.deny = denying("/b")
		e := c.engine(t)
		wanted := wants(t, "shop", hookYAML+configMapYAML("a", "k: v")+configMapYAML("b", "k: v"), "other", configMapYAML("c", "k: v"))
		report := e.settle(t, wanted, soon)
		assert.Nil(t, c.get(hookKey))
		assert.Equal(t, []Waiting{{parseID(t, hookKey), "the rest of its add-on to be applied"}}, report.AddOns[0].Waiting)
		assert.True(t, report.AddOns[1].Applied())
		c.deny = nil
		e.settle(t, wanted, time.Hour)
		assert.NotNil(t, c.get(hookKey))
	})
}

func TestTheAgentIsTheLastOfItsAddOn(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: fleetling, namespace: fleetling-system}, data: {k: v}}\n---\n"
	key := "apps/Deployment/fleetling-system/fleetling"
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, hookKind, "apps/v1 Deployment namespaced")
		c.deny = denying("/hook")
		e := c.engine(t)
		wanted := wants(t, "fleetling", deployment+hookYAML+configMapYAML("a", "k: v"))
		report := e.settle(t, wanted, soon)
		assert.Nil(t, c.get(key))
		assert.Equal(t, []Waiting{{parseID(t, key), "the rest of its add-on to be applied"}}, report.AddOns[0].Waiting)
		c.deny = nil
		c.take()
		e.settle(t, wanted, time.Hour)
		writes := c.take()
		require.NotEmpty(t, on(writes, "/fleetling"))
		assert.Less(t, slices.Index(writes, on(writes, "/hook")[0]), slices.Index(writes, on(writes, "/deployments/fleetling")[0]))
	})
}

func TestAGuardThatSomebodyTookAwayIsRepairedWhateverElseFails(t *testing.T) {
	for name, attack := range map[string]func(c *cluster){
		"deleted": func(c *cluster) { c.remove(hookKey) },
		"changed": func(c *cluster) {
			c.edit("someone", hookKey, func(u *unstructured.Unstructured) { setData(u, "k", "x") })
		},
		"deleted while we were away": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t, hookKind)
				e := c.engine(t)
				e.settle(t, wants(t, "shop", hookYAML+configMapYAML("a", "k: v")), soon)
				c.deny = denying("/a")
				broken := wants(t, "shop", hookYAML+configMapYAML("a", "k: w"))
				if attack != nil {
					e.settle(t, broken, soon)
					attack(c)
				} else {
					e.stop()
					c.remove(hookKey)
					e = c.engine(t)
				}
				report := e.settle(t, broken, soon)
				require.Len(t, report.AddOns[0].Failures, 1)
				require.NotNil(t, c.get(hookKey))
				assert.Equal(t, map[string]any{"k": "v"}, c.data(hookKey))
			})
		})
	}
}

func TestObjectsWaitForANamespaceThatCouldNotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		c.deny = denying("/namespaces/new")
		e := c.engine(t)
		in := strings.ReplaceAll(configMapYAML("a", "k: v"), "namespace: web", "namespace: new")
		wanted := wants(t, "first", "{apiVersion: v1, kind: Namespace, metadata: {name: new}}\n---\n"+in, "second", strings.ReplaceAll(in, "name: a,", "name: b,")+configMapYAML("c", "k: v"))
		report := e.settle(t, wanted, soon)
		assert.Len(t, report.AddOns[0].Failures, 1)
		assert.Equal(t, "Namespace/new to be applied", report.AddOns[0].Waiting[0].What)
		assert.Equal(t, "Namespace/new to be applied", report.AddOns[1].Waiting[0].What)
		assert.Empty(t, on(c.writes, "/a"), "no request that must fail")
		assert.NotNil(t, c.get("/ConfigMap/web/c"))
		c.deny = nil
		report = e.settle(t, wanted, time.Minute)
		assert.True(t, report.AddOns[0].Applied() && report.AddOns[1].Applied())
	})
}

func TestANamespaceThatIsThereDoesNotHinderWhatIsInIt(t *testing.T) {
	namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: web}, data: {k: v}}\n---\n"
	cases := map[string]func(t *testing.T, c *cluster){
		"another's": func(_ *testing.T, c *cluster) {
			c.applyAs("someone", "/Namespace//web", false, map[string]any{"k": "x"})
		},
		"ours, and its change is refused": func(t *testing.T, c *cluster) {
			t.Helper()
			e := c.engine(t)
			e.settle(t, wants(t, "shop", strings.ReplaceAll(namespace, "k: v", "k: old")), soon)
			e.stop()
			c.deny = denying("/namespaces/web")
		},
	}
	for name, setUp := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				setUp(t, c)
				report := c.engine(t).settle(t, wants(t, "shop", namespace+configMapYAML("a", "k: v")), soon)
				assert.Len(t, report.AddOns[0].Failures, 1)
				assert.NotNil(t, c.get("/ConfigMap/web/a"))
			})
		})
	}
}

func TestWhatWasAppliedBeforeTheServerWentAwayIsInTheInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // F2
		c := startCluster(t, "v1 ServiceAccount namespaced")
		e := c.engine(t)
		account := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: web}}\n---\n"
		wanted := wants(t, "shop", account+configMapYAML("a", "k: v"))
		c.deny = func(_, path string) *apierrors.StatusError {
			if strings.HasSuffix(path, "/a") {
				return apierrors.NewUnauthorized("not now")
			}
			return nil
		}
		_, err := e.Pass(t.Context(), wanted)
		require.ErrorContains(t, err, "not now")
		assert.Equal(t, map[string]string{"shop-0": "?/ConfigMap/web/a\n/ServiceAccount/web/sa\n"}, c.inventory(t))
		c.deny = nil
		report := e.settle(t, wanted, soon)
		assert.True(t, report.AddOns[0].Applied(), "no backoff: it said nothing of the object")
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n/ServiceAccount/web/sa\n"}, c.inventory(t))
	})
}

func TestNothingIsAppliedThatCouldNotBeWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		c.deny = func(_, path string) *apierrors.StatusError {
			if strings.Contains(path, "fleetling-system/configmaps") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", assert.AnError)
			}
			return nil
		}
		wanted := wants(t, "shop", configMapYAML("a", "k: v"))
		_, err := e.Pass(t.Context(), wanted)
		require.ErrorContains(t, err, "write the inventory of add-on shop")
		assert.Empty(t, c.take())
		c.deny = nil
		e.settle(t, wanted, soon)
		assert.NotNil(t, c.get("/ConfigMap/web/a"))
	})
}

func TestAnotherWriterOfTheInventoryIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		c.edit("another agent", "/ConfigMap/fleetling-system/fleetling-inventory-shop-0", func(u *unstructured.Unstructured) {
			setData(u, inventoryKey, "/ConfigMap/web/a\n/ConfigMap/web/theirs\n")
		})
		more := wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v"))
		_, err := e.Pass(t.Context(), more)
		require.Error(t, err)
		assert.Nil(t, c.get("/ConfigMap/web/b"))
		e.settle(t, more, soon)
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n/ConfigMap/web/b\n"}, c.inventory(t), "what they held was read, looked for and not there")
	})
}

func TestALostInventoryIsRebuiltAndStraysAreOnlyTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		first := c.engine(t)
		first.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v")), soon)
		first.stop()
		c.remove("/ConfigMap/fleetling-system/fleetling-inventory-shop-0")
		report := c.engine(t).settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
		assert.Equal(t, []ID{{Kind: "ConfigMap", Namespace: "web", Name: "b"}}, report.Strays)
		assert.NotNil(t, c.get("/ConfigMap/web/b"))
	})
}

func TestARefusalIsForgottenWithWhatWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		good := wants(t, "shop", configMapYAML("a", "k: v"))
		e.settle(t, good, soon)
		c.deny = denying("/a")
		report := e.settle(t, wants(t, "shop", configMapYAML("a", "k: w")), soon)
		require.Len(t, report.AddOns[0].Failures, 1)
		// Git goes back: nothing is to be done, and no try is waited for.
		report = e.settle(t, good, time.Hour)
		assert.Empty(t, report.AddOns[0].Failures)
		assert.GreaterOrEqual(t, report.Again, verifyEvery)
	})
}

func TestAFailureWithinTheSameMomentAsItsRetryIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		c.deny = denying("/a")
		e := c.engine(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v"))
		report, err := e.Pass(t.Context(), wanted)
		require.NoError(t, err)
		require.Equal(t, firstRetry, report.Again)
		// The next pass is planned just before the retry is due, and is still at
		// work when it is.
		<-time.After(firstRetry - time.Second)
		planned := time.Now()
		e.now = func() time.Time { defer func() { planned = planned.Add(time.Second) }(); return planned }
		report, err = e.Pass(t.Context(), wanted)
		require.NoError(t, err)
		assert.Positive(t, report.Again)
	})
}

func crdYAML(scope string) string {
	return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, " +
		"spec: {group: example.com, names: {kind: Widget}, scope: " + scope + ", versions: [{name: v1, served: true}]}}\n---\n"
}

const (
	crdKind    = "apiextensions.k8s.io/v1 CustomResourceDefinition cluster"
	crdKey     = "apiextensions.k8s.io/CustomResourceDefinition//widgets.example.com"
	widgetYAML = "{apiVersion: example.com/v1, kind: Widget, data: {k: v}, metadata: {name: w, namespace: web}}\n---\n"
	widgetKey  = "example.com/Widget/web/w"
)

func TestADefinitionAndItsInstancesConvergeFromOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // B08
		c := startCluster(t, crdKind)
		e := c.engine(t)
		wanted := wants(t, "shop", widgetYAML+configMapYAML("a", "k: v")+crdYAML("Namespaced"))
		report := e.settle(t, wanted, soon)
		assert.NotNil(t, c.get("/ConfigMap/web/a"), "unrelated objects do not wait")
		assert.Equal(t, []Waiting{{parseID(t, widgetKey), "its CustomResourceDefinition to be established"}}, report.AddOns[0].Waiting)
		assert.Empty(t, report.AddOns[0].Failures)

		c.serve("example.com/v1 Widget namespaced")
		c.edit("kube-apiserver", crdKey, func(u *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions"))
		})
		synctest.Wait()
		report = e.settle(t, wanted, soon)
		assert.NotNil(t, c.get(widgetKey))
		assert.Empty(t, report.AddOns[0].Waiting)
		report = e.settle(t, wanted, time.Minute)
		assert.True(t, report.AddOns[0].Applied() && report.AddOns[0].Healthy())
		assert.Equal(t, 1, report.AddOns[0].NoStatus)
	})
}

func TestAKindThatAppearsIsFoundWithoutADefinitionOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		wanted := wants(t, "shop", widgetYAML)
		report := e.settle(t, wanted, time.Minute)
		require.Len(t, report.AddOns[0].Failures, 1)
		assert.Equal(t, KindNotServed, report.AddOns[0].Failures[0].Reason)
		c.serve("example.com/v1 Widget namespaced")
		e.settle(t, wanted, lastLook)
		assert.NotNil(t, c.get(widgetKey))
	})
}

func TestAKindThatWentWithoutAWordIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, "example.com/v1 Widget namespaced")
		e := c.engine(t)
		old := wants(t, "shop", widgetYAML+configMapYAML("a", "k: v"))
		e.settle(t, old, soon)
		// The definition, which is not ours, serves another version by now.
		c.mu.Lock()
		c.kinds = c.kinds[:len(c.kinds)-1]
		c.mu.Unlock()
		c.serve("example.com/v2 Widget namespaced")
		c.take()
		report := e.settle(t, wants(t, "shop", strings.ReplaceAll(widgetYAML, "k: v", "k: w")+configMapYAML("a", "k: v")), 3*time.Second)
		require.Len(t, report.AddOns[0].Failures, 1)
		assert.Equal(t, KindNotServed, report.AddOns[0].Failures[0].Reason)
		assert.Contains(t, report.AddOns[0].Failures[0].Message, "it serves example.com/v2 Widget")
		var watched []string
		for stream := range c.watches {
			if stream.target.kind.gvk.Kind == "Widget" {
				watched = append(watched, stream.target.kind.gvk.Version)
			}
		}
		assert.Equal(t, []string{"v2"}, watched, "the watch of the old version has ended")

		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), time.Minute)
		assert.Nil(t, c.get(widgetKey), "pruned by the version that is served")
		assert.Equal(t, map[string]string{"shop-0": "/ConfigMap/web/a\n"}, c.inventory(t))
	})
}

func TestAPathThatIsNotServedIsNoProofThatAnObjectIsGone(t *testing.T) {
	for name, labels := range map[string]map[string]string{"in sight": {AddOnLabel: "shop"}, "out of sight": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t, "example.com/v1 Widget namespaced")
				e := c.engine(t)
				e.settle(t, wants(t, "shop", widgetYAML+configMapYAML("a", "k: v")), soon)
				c.edit("someone", widgetKey, func(u *unstructured.Unstructured) { u.SetLabels(labels) })
				synctest.Wait()
				c.mu.Lock()
				c.kinds = c.kinds[:len(c.kinds)-1]
				c.mu.Unlock()
				c.serve("example.com/v2 Widget namespaced")
				one := wants(t, "shop", configMapYAML("a", "k: v"))
				report, err := e.Pass(t.Context(), one)
				require.NoError(t, err)
				require.Len(t, report.AddOns[0].Failures, 1)
				assert.Equal(t, KindNotServed, report.AddOns[0].Failures[0].Reason)
				assert.Contains(t, c.inventory(t)["shop-0"], widgetKey)
				e.settle(t, one, time.Minute)
				assert.Nil(t, c.get(widgetKey), "pruned by the version that is served")
				assert.NotContains(t, c.inventory(t)["shop-0"], widgetKey)
			})
		})
	}
}

func TestAnAPIThatFallsSilentChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, "example.com/v1 Widget namespaced")
		first := c.engine(t)
		both := wants(t, "shop", widgetYAML+configMapYAML("a", "k: v"))
		first.settle(t, both, soon)
		first.stop()
		c.silent = []schema.GroupVersion{{Group: "example.com", Version: "v1"}}
		c.take()
		e := c.engine(t)
		report := e.settle(t, both, time.Minute)
		require.Len(t, report.AddOns[0].Waiting, 1)
		assert.Contains(t, report.AddOns[0].Waiting[0].What, "does not answer")
		report = e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), time.Hour)
		require.Len(t, report.AddOns[0].Removing, 1)
		assert.NotNil(t, c.get(widgetKey))
		assert.Contains(t, c.inventory(t)["shop-0"], widgetKey)
		c.silent = nil
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), lastLook+soon)
		assert.Nil(t, c.get(widgetKey))
	})
}

func TestNoValueOfASecretGetsIntoAReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // I7
		c := startCluster(t)
		c.deny = func(_, path string) *apierrors.StatusError {
			if !strings.Contains(path, "/secrets/") {
				return nil
			}
			err := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", nil)
			err.ErrStatus.Message = "hook: Secret s holds hunter2 (aHVudGVyMg==)"
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "data[password]", Message: "Invalid value: hunter2"}}
			return err
		}
		secret := "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: web}, stringData: {password: hunter2}}\n---\n"
		e := c.engine(t)
		report := e.settle(t, wants(t, "shop", secret+configMapYAML("a", "k: v")), soon)
		assert.NotContains(t, fmt.Sprintf("%+v", report), "hunter2")
		require.Len(t, report.AddOns[0].Failures, 1)
		assert.Contains(t, report.AddOns[0].Failures[0].Message, "data[password]")

		c.deny = nil
		e.settle(t, wants(t, "shop", secret+configMapYAML("a", "k: v")), time.Minute)
		c.deny = func(method, path string) *apierrors.StatusError {
			if method == http.MethodDelete && strings.Contains(path, "/secrets/") {
				return apierrors.NewForbidden(schema.GroupResource{}, "s", fmt.Errorf("hook: it holds hunter2"))
			}
			return nil
		}
		report = e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		require.Len(t, report.AddOns[0].Failures, 1)
		assert.NotContains(t, fmt.Sprintf("%+v", report), "hunter2")
	})
}

func TestANamespaceThatIsGoingAwayIsNoDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // B17
		c := startCluster(t)
		c.deny = func(_, path string) *apierrors.StatusError {
			if !strings.HasSuffix(path, "/a") {
				return nil
			}
			err := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", fmt.Errorf("unable to create new content in namespace web because it is being terminated"))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			return err
		}
		report := c.engine(t).settle(t, wants(t, "shop", configMapYAML("a", "k: v")), soon)
		assert.Equal(t, Failed, report.AddOns[0].Failures[0].Reason)
		assert.Contains(t, report.AddOns[0].Failures[0].Message, "being terminated")
	})
}

func TestHealthFollowsTheWatchAndAGraceOfThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, "example.com/v1 Widget namespaced")
		e := c.engine(t)
		wanted := wants(t, "shop", widgetYAML+configMapYAML("a", "k: v"))
		report := e.settle(t, wanted, soon)
		shop := report.AddOns[0]
		assert.True(t, shop.Applied())
		require.Len(t, shop.Unready, 1)
		assert.Equal(t, "no controller has written a status yet", shop.Unready[0].Message)
		assert.Greater(t, report.Again, 20*time.Second)
		report = e.settle(t, wanted, statusGrace)
		assert.True(t, report.AddOns[0].Healthy())
		assert.Equal(t, 1, report.AddOns[0].NoStatus)
		assert.GreaterOrEqual(t, report.Again, verifyEvery)

		ready := func(status string) {
			c.edit("controller", widgetKey, func(u *unstructured.Unstructured) {
				require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Ready", "status": status, "message": "not yet"}}, "status", "conditions"))
			})
			synctest.Wait()
			report = e.settle(t, wanted, soon)
		}
		ready("False")
		assert.Len(t, report.AddOns[0].Unready, 1)
		assert.Equal(t, "not yet", report.AddOns[0].Unready[0].Message)
		ready("True")
		assert.True(t, report.AddOns[0].Healthy())
		assert.Zero(t, report.AddOns[0].NoStatus)
		assert.Empty(t, on(c.take(), "/w")[1:], "status is no drift")
	})
}

func TestAGiveBackThatIsRefusedIsTriedAgain(t *testing.T) {
	const key = "/ConfigMap/web/a"
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		c.applyAs("kustomize-controller", key, false, map[string]any{"k": "v"})
		c.deny = func(string, string) *apierrors.StatusError {
			if len(on(c.writes, "/a")) == 2 {
				return apierrors.NewForbidden(schema.GroupResource{}, "a", assert.AnError)
			}
			return nil
		}
		e := c.engine(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v"))
		report := e.settle(t, wanted, soon)
		require.Equal(t, Denied, report.AddOns[0].Failures[0].Reason)
		require.Contains(t, managers(c.get(key)), Manager)
		report = e.settle(t, wanted, time.Minute)
		assert.Equal(t, OwnedByOther, report.AddOns[0].Failures[0].Reason)
		assert.Equal(t, map[string]string{"kustomize-controller": "Apply"}, managers(c.get(key)))
	})
}

func TestAReadThatIsRefusedIsAFailureOfItsObject(t *testing.T) {
	const key = "/ConfigMap/web/a"
	for name, value := range map[string]string{"on first contact": "x", "when its owner is asked": "v"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCluster(t)
				c.applyAs("kustomize-controller", key, false, map[string]any{"k": value})
				e := c.engine(t)
				wanted := wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v"))
				if value == "v" {
					e.settle(t, wanted, soon)
				}
				c.deny = func(method, _ string) *apierrors.StatusError {
					if method == http.MethodGet {
						return apierrors.NewForbidden(schema.GroupResource{}, "a", assert.AnError)
					}
					return nil
				}
				e.RetryNow()
				report := e.settle(t, wanted, soon)
				require.Len(t, report.AddOns[0].Failures, 1)
				assert.Equal(t, Denied, report.AddOns[0].Failures[0].Reason)
				assert.Equal(t, 1, report.AddOns[0].Ready)
				assert.Equal(t, map[string]any{"k": value}, c.data(key))
			})
		})
	}
}

func TestAServerThatDoesNotAnswerIsAnErrorAndNotAnEmptyCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		first := c.engine(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v"))
		first.settle(t, wanted, soon)
		first.stop()
		writes := len(c.writes)
		for name, path := range map[string]string{"the inventory": "/api/v1/namespaces/fleetling-system/configmaps", "the kinds": "/apis"} {
			e, err := New(t.Context(), Config{
				REST:      &rest.Config{Host: "http://cluster", Transport: breaking{c, path}, QPS: -1},
				Namespace: "fleetling-system", Changed: func() {}, Now: time.Now,
			})
			require.NoError(t, err)
			_, err = e.Pass(t.Context(), wants(t, "shop", configMapYAML("b", "k: v")))
			require.ErrorIs(t, err, assert.AnError, name)
			e.Close()
		}
		assert.Len(t, c.writes, writes)
	})
}

// breaking is a transport that does not reach one path.
type breaking struct {
	next http.RoundTripper
	path string
}

func (b breaking) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path == b.path {
		return nil, assert.AnError
	}
	return b.next.RoundTrip(req)
}

func TestAnEngineWithoutAClientIsAnError(t *testing.T) {
	_, err := New(t.Context(), Config{REST: &rest.Config{Host: "http://cluster:port", Transport: breaking{}}})
	require.Error(t, err)
}

func TestAChangeThatNoWatchToldOfIsRepairedByTheBackstop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v"))
		report := e.settle(t, wanted, soon)
		before := len(c.writes)
		<-time.After(report.Again)
		report, err := e.Pass(t.Context(), wanted)
		require.NoError(t, err)
		assert.Equal(t, before+1, len(c.writes), "one request in all these hours")
		assert.Empty(t, report.AddOns[0].Failures)
	})
}
