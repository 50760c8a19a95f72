package apply

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestALookTouchesNothingAndSaysWhatAPassWouldDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		e.settle(t, wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: v")+configMapYAML("c", "k: v")), soon)
		c.edit("kubectl", "/ConfigMap/web/a", func(u *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(u.Object, "drift", "data", "k"))
		})
		synctest.Wait()
		c.take()
		inventory := c.inventory(t)

		next := wants(t, "shop", configMapYAML("a", "k: v")+configMapYAML("b", "k: w")+configMapYAML("d", "k: v"))
		report, err := e.Look(t.Context(), next)
		require.NoError(t, err)
		assert.Empty(t, c.take())
		assert.Equal(t, inventory, c.inventory(t))
		assert.Equal(t, "drift", c.data("/ConfigMap/web/a")["k"])
		require.Len(t, report.AddOns, 1)
		got := map[string]string{}
		for _, w := range report.AddOns[0].Waiting {
			got["apply "+w.ID.Name] = w.What
		}
		for _, w := range report.AddOns[0].Removing {
			got["delete "+w.ID.Name] = w.What
		}
		want := map[string]string{"apply a": Untouched, "apply b": Untouched, "apply d": Untouched, "delete c": Untouched}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		assert.Empty(t, report.AddOns[0].Repaired)

		e.settle(t, next, time.Minute)
		assert.Equal(t, "v", c.data("/ConfigMap/web/a")["k"], "a pass does it")
		assert.Nil(t, c.get("/ConfigMap/web/c"))
		report, err = e.Look(t.Context(), next)
		require.NoError(t, err)
		assert.True(t, report.AddOns[0].Applied() && report.AddOns[0].Quiet() && report.AddOns[0].Healthy(), "then there is nothing to do")
	})
}

func TestALookDoesNotTakeTheBackstopForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t)
		e := c.engine(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v"))
		e.settle(t, wanted, soon)
		time.Sleep(2 * verifyEvery) //nolint:forbidigo // the bubble's time
		report, err := e.Look(t.Context(), wanted)
		require.NoError(t, err)
		assert.True(t, report.AddOns[0].Applied())
	})
}

func TestC1ServicesWaitUntilTheFirstOneIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, "v1 Service namespaced")
		e := c.engine(t)
		wanted := wants(t, "shop", configMapYAML("a", "k: v")+"{apiVersion: v1, kind: Service, metadata: {name: front, namespace: web}, spec: {ports: [{port: 80}]}}\n")
		report := e.settle(t, wanted, time.Minute)
		assert.Nil(t, c.get("/Service/web/front"))
		assert.NotNil(t, c.get("/ConfigMap/web/a"), "all else is applied")
		require.Len(t, report.AddOns[0].Waiting, 1)
		assert.Contains(t, report.AddOns[0].Waiting[0].What, "default/kubernetes")
		assert.Equal(t, firstRetry, report.Again, "nobody tells when it is there")

		c.edit("kube-apiserver", "/Service/default/kubernetes", func(*unstructured.Unstructured) {})
		report = e.settle(t, wanted, time.Minute)
		assert.NotNil(t, c.get("/Service/web/front"))
		assert.True(t, report.AddOns[0].Applied())

		c.remove("/Service/default/kubernetes")
		c.edit("kubectl", "/Service/web/front", func(u *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{map[string]any{"port": int64(81)}}, "spec", "ports"))
		})
		e.settle(t, wanted, time.Minute)
		ports, _, err := unstructured.NestedSlice(c.get("/Service/web/front").Object, "spec", "ports")
		require.NoError(t, err)
		assert.Equal(t, []any{map[string]any{"port": int64(80)}}, ports, "once it was there, repair is not held up")
	})
}
