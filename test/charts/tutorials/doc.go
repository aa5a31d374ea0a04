// Package tutorials tests the rendered objects of the charts of the kinds
// Experimental, VmGroup, Config and Addon.
package tutorials
