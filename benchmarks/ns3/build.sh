#!/bin/sh
# Build dumbbell.cc. Needs Debian's libns3-dev, libgsl-dev, libsqlite3-dev, libxml2-dev, g++.
set -e
cd "$(dirname "$0")"
mkdir -p build
modules="ns3-core ns3-network ns3-internet ns3-point-to-point ns3-applications ns3-traffic-control"
g++ -O2 -std=c++17 dumbbell.cc -o build/dumbbell $(pkg-config --cflags --libs $modules)
