package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func newStore(t *testing.T, objects ...runtime.Object) (*store, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(objects...)
	s := &store{client: client.CoreV1().ConfigMaps("fleetling-system")}
	_, err := s.load(t.Context())
	require.NoError(t, err)
	client.ClearActions()
	return s, client
}

// done is what a client did, as "verb name".
func done(client *fake.Clientset) []string {
	var all []string
	for _, action := range client.Actions() {
		name := ""
		switch a := action.(type) {
		case clienttesting.CreateActionImpl:
			name = a.Object.(*corev1.ConfigMap).Name
		case clienttesting.UpdateActionImpl:
			name = a.Object.(*corev1.ConfigMap).Name
		case clienttesting.DeleteActionImpl:
			name = a.Name
		}
		all = append(all, strings.TrimSpace(action.GetVerb()+" "+name))
	}
	client.ClearActions()
	return all
}

func TestTheStoreWritesWhatChangedAndReadsItBack(t *testing.T) {
	s, client := newStore(t)
	large := manyIDs(3000)
	require.NoError(t, s.grow(t.Context(), "shop", large))
	assert.Equal(t, []string{"create fleetling-inventory-shop-2", "create fleetling-inventory-shop-1", "create fleetling-inventory-shop-0"}, done(client), "the last one first")
	require.NoError(t, s.grow(t.Context(), "shop-1", Set{{Kind: "Namespace", Name: "web"}: Held}))
	done(client)
	require.NoError(t, s.grow(t.Context(), "shop", large))
	assert.Empty(t, done(client), "nothing changed")

	again := &store{client: s.client}
	inventory, err := again.load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Inventory{"shop": large, "shop-1": {{Kind: "Namespace", Name: "web"}: Held}}, inventory)
	done(client)

	small := manyIDs(1)
	require.NoError(t, again.shrink(t.Context(), "shop", small))
	assert.Equal(t, []string{"update fleetling-inventory-shop-0", "delete fleetling-inventory-shop-1", "delete fleetling-inventory-shop-2"}, done(client))
	require.NoError(t, again.shrink(t.Context(), "shop", Set{}))
	assert.Equal(t, []string{"delete fleetling-inventory-shop-0"}, done(client))
	inventory, err = again.load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Inventory{"shop-1": {{Kind: "Namespace", Name: "web"}: Held}}, inventory)
}

func TestAConfigMapOfTheInventoryNamesItsAddOnAndHasALock(t *testing.T) {
	s, client := newStore(t)
	require.NoError(t, s.grow(t.Context(), "shop", Set{{Kind: "Namespace", Name: "web"}: Intended}))
	cm, err := client.CoreV1().ConfigMaps("fleetling-system").Get(t.Context(), "fleetling-inventory-shop-0", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{inventoryLabel: "shop"}, cm.Labels)
	assert.Equal(t, map[string]string{inventoryKey: "?/Namespace//web\n"}, cm.Data)

	s.maps[cm.Name].UID, s.maps[cm.Name].ResourceVersion = "u7", "77"
	client.ClearActions()
	require.NoError(t, s.shrink(t.Context(), "shop", Set{{Kind: "Namespace", Name: "web"}: Held}))
	updated := client.Actions()[0].(clienttesting.UpdateActionImpl).Object.(*corev1.ConfigMap)
	assert.Equal(t, "77", updated.ResourceVersion)
	s.maps[cm.Name].UID, s.maps[cm.Name].ResourceVersion = "u7", "78"
	client.ClearActions()
	require.NoError(t, s.shrink(t.Context(), "shop", Set{}))
	lock := client.Actions()[0].(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
	require.NotNil(t, lock)
	assert.Equal(t, "u7 78", fmt.Sprint(*lock.UID, " ", *lock.ResourceVersion))
}

func TestARefusedWriteOfTheInventoryNamesTheAddOn(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	for verb, refusal := range map[string]error{
		"create": apierrors.NewAlreadyExists(resource, "x"),
		"update": apierrors.NewConflict(resource, "x", assert.AnError),
		"delete": apierrors.NewConflict(resource, "x", assert.AnError),
	} {
		t.Run(verb, func(t *testing.T) {
			s, client := newStore(t)
			if verb != "create" {
				require.NoError(t, s.grow(t.Context(), "shop", manyIDs(1500)))
			}
			client.PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
			var err error
			switch verb {
			case "create", "update":
				err = s.grow(t.Context(), "shop", Set{{Kind: "Namespace", Name: "web"}: Held})
			case "delete":
				err = s.shrink(t.Context(), "shop", manyIDs(1))
			}
			require.ErrorIs(t, err, refusal)
			assert.ErrorContains(t, err, "the inventory of add-on shop")
		})
	}
}

func TestAConfigMapThatIsGoneAlreadyNeedsNoDelete(t *testing.T) {
	s, client := newStore(t)
	require.NoError(t, s.grow(t.Context(), "shop", manyIDs(1)))
	require.NoError(t, client.CoreV1().ConfigMaps("fleetling-system").Delete(t.Context(), "fleetling-inventory-shop-0", metav1.DeleteOptions{}))
	require.NoError(t, s.shrink(t.Context(), "shop", Set{}))
	assert.Empty(t, s.maps)
}

func TestAnInventoryThatCanNotBeReadIsAnErrorThatSaysWhatToDo(t *testing.T) {
	cases := map[string]struct{ name, addOn, text, want string }{
		"a text that does not parse":    {"fleetling-inventory-shop-0", "shop", "/ConfigMap/web/a\ngarbage", "delete it, and it is rebuilt"},
		"a copy under another name":     {"fleetling-inventory-shop-0-copy", "shop", "/ConfigMap/web/a\n", "does not go with its name"},
		"a label of another add-on":     {"fleetling-inventory-shop-0", "other", "/ConfigMap/web/a\n", "does not go with its name"},
		"an index that is none":         {"fleetling-inventory-shop-00", "shop", "/ConfigMap/web/a\n", "does not go with its name"},
		"an index below the first":      {"fleetling-inventory-shop--1", "shop", "/ConfigMap/web/a\n", "does not go with its name"},
		"the chunk of a longer name":    {"fleetling-inventory-shop-1-0", "shop", "/ConfigMap/web/a\n", "does not go with its name"},
		"a label that names no add-on":  {"fleetling-inventory-shop-0", "", "/ConfigMap/web/a\n", "does not go with its name"},
		"the ConfigMap of nobody knows": {"notes", "shop", "/ConfigMap/web/a\n", "does not go with its name"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleetling-system", Name: test.name, Labels: map[string]string{inventoryLabel: test.addOn}},
				Data:       map[string]string{inventoryKey: test.text},
			})
			_, err := (&store{client: client.CoreV1().ConfigMaps("fleetling-system")}).load(t.Context())
			require.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, "ConfigMap/fleetling-system/"+test.name)
		})
	}
}

func TestAListThatFailsIsNoEmptyInventory(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, assert.AnError })
	inventory, err := (&store{client: client.CoreV1().ConfigMaps("fleetling-system")}).load(t.Context())
	require.ErrorIs(t, err, assert.AnError)
	assert.Nil(t, inventory)
}

func TestOtherConfigMapsAreNoInventory(t *testing.T) {
	s, _ := newStore(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleetling-system", Name: "fleetling-pin"}, Data: map[string]string{"x": "y"}})
	inventory, err := s.load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Inventory{}, inventory)
}
