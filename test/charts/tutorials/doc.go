// Package tutorials tests the rendered objects of the charts of the kinds
// PodSet, OvhNginx, Experimental, VmGroup, Config and Addon.
package tutorials
