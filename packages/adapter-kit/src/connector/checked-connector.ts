import { AdapterError } from '../errors.ts';
import { checkSpecVersion } from '../plugin.ts';
import { checkedScheduler } from './checked-scheduler.ts';
import { checkedWorker } from './checked-worker.ts';
import type { ConnectorLayout, ConnectorScheduler, ConnectorWorker, KvConnector } from './kv-connector.ts';

/**
 * A connector whose arguments and order of calls are checked, so that no connector has to: what an engine calls connectors through. Each side
 * is checked by itself, as they may be in different processes.
 *
 * Calls throw {AdapterError} `call-order`, `invalid-connector-argument`, `unknown-request`, `unsupported-call` before `register`, and
 * `plugin-closed`; `register` throws `invalid-connector-layout` and `private-group`. Nothing reaches the connector then.
 *
 * @throws {AdapterError} `plugin-spec-version` on a connector of another version
 */
export function checkedConnector(connector: KvConnector): KvConnector {
  checkSpecVersion(connector);
  const { name } = connector;
  let sides: { scheduler: ConnectorScheduler; worker: ConnectorWorker } | undefined;
  let isClosed = false;
  const checkOpen = () => {
    if (isClosed) throw new AdapterError('plugin-closed', `${name} was closed; make a new one`);
  };
  const registered = () => {
    if (sides === undefined)
      throw new AdapterError('unsupported-call', `${name}: it knows no layout yet; call \`register\` first`);
    return sides;
  };
  return {
    specVersion: connector.specVersion,
    name,
    supports: connector.supports,
    get scheduler() {
      return registered().scheduler;
    },
    get worker() {
      return registered().worker;
    },
    register(layout, memory) {
      checkOpen();
      if (sides !== undefined) throw new AdapterError('call-order', `${name}: it was registered before; make another connector`);
      checkLayout(name, layout);
      connector.register(layout, memory);
      sides = {
        scheduler: checkedScheduler(name, connector.scheduler, layout, checkOpen),
        worker: checkedWorker(name, connector.worker, layout, checkOpen),
      };
    },
    resetCache: (options) => connector.resetCache(options),
    takeEvents() {
      registered();
      if (!connector.supports.events)
        throw new AdapterError('unsupported-call', `${name} tells of no events; look at supports.events`);
      return connector.takeEvents();
    },
    close() {
      isClosed = true;
      return connector.close();
    },
  };
}

function checkLayout(name: string, { modelFingerprint, tokensPerBlock, groups }: ConnectorLayout): void {
  const refused = (why: string) =>
    new AdapterError('invalid-connector-layout', `${name}: ${why}; \`connectorLayout\` makes a layout of a manager`);
  if (typeof modelFingerprint !== 'string' || modelFingerprint === '')
    throw refused('the fingerprint of the model is empty, and pages of all models would have the same names');
  if (!isWhole(tokensPerBlock, 1)) throw refused(`a block has ${tokensPerBlock} tokens`);
  const ids = new Set<number>();
  for (const { groupId, lifecycle, layerIds, pageBytes } of groups) {
    if (!isWhole(groupId, 0)) throw refused(`there is a group ${groupId}`);
    if (ids.has(groupId)) throw refused(`group ${groupId} is there twice`);
    ids.add(groupId);
    if (lifecycle.policy === 'private')
      throw new AdapterError(
        'private-group',
        `${name}: group ${groupId} is private, and its pages are their request's alone; leave it out`,
      );
    if (layerIds.length === 0) throw refused(`group ${groupId} has no layers`);
    if (!isWhole(pageBytes, 1)) throw refused(`pages of group ${groupId} have ${pageBytes} bytes`);
  }
}

const isWhole = (value: number, least: number) => Number.isSafeInteger(value) && value >= least;
