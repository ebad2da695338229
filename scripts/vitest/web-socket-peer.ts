import type { TestProject } from 'vitest/node';
import { importSource } from '../run/source-module.mjs';

/** Global setup of the tests in a browser: the other side of a connection, in Node. Its tests ask for `webSocketPeer`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const rig = await importSource('packages/adapter-disaggregation', 'src/websocket/browser-peer-rig.ts');
  const { address, key, close } = await rig.startPeer();
  project.provide('webSocketPeer' as never, { address, key } as never);
  return close;
}
