/**
 * Real servers for tests: found on this machine, started on free ports in a folder of their own, and ended with the test.
 *
 * @packageDocumentation
 */

export { type Fault, FaultProxy, type WayFault } from './fault-proxy.ts';
export { findServer, SERVERS, type ServerName } from './find-server.ts';
export { freePorts } from './free-ports.ts';
export { hasServer } from './has-server.ts';
export { isReachable } from './is-reachable.ts';
export { LOCALHOST } from './localhost-certificate.ts';
export { NatsProcess } from './nats-process.ts';
export { RedisCluster } from './redis-cluster.ts';
export { redisCommand } from './redis-command.ts';
export { RedisProcess } from './redis-process.ts';
export { SeparateNetwork } from './separate-network.ts';
export { SmallDisk } from './small-disk.ts';
export { until } from './until.ts';
