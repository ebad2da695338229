import { AdapterError } from '../errors.ts';
import type { ConnectorLayout, ConnectorWorker } from './kv-connector.ts';

/** How far a step has come. A call belongs to some of them, and may lead to a later one. */
const PHASES = ['outside of a step', 'begun', 'loading', 'saved'] as const;
type Phase = (typeof PHASES)[number];

/** The moving side of `checkedConnector`. */
export function checkedWorker(
  name: string,
  worker: ConnectorWorker,
  layout: ConnectorLayout,
  checkOpen: () => void,
): ConnectorWorker {
  const layers = new Set(layout.groups.flatMap(({ layerIds }) => layerIds));
  const saved = new Set<number>();
  let phase: Phase = 'outside of a step';
  const check = (call: string, wayOut: string, ...phases: readonly Phase[]) => {
    checkOpen();
    if (phases.includes(phase)) return;
    throw new AdapterError('call-order', `${name}, ${call}: the step is at "${phase}"; ${wayOut}`);
  };
  const argument = (call: string, why: string) => new AdapterError('invalid-connector-argument', `${name}, ${call}: ${why}`);
  const checkLayer = (call: string, layerId: number) => {
    if (!layers.has(layerId)) throw argument(call, `layer ${layerId} has no group that was registered; leave it out`);
  };
  const checkIds = (call: string, ids: readonly number[]) => {
    const odd = ids.find((id, i) => !Number.isSafeInteger(id) || id < 0 || ids.indexOf(id) !== i);
    if (odd !== undefined) throw argument(call, `request ${odd} is none, or is named twice`);
  };
  return {
    beginStep(orders) {
      check('beginStep', 'end the step before first', 'outside of a step');
      worker.beginStep(orders);
      saved.clear();
      phase = 'begun';
    },
    async preempted(ids) {
      check('preempted', 'it comes between beginStep and startLoad', 'begun');
      checkIds('preempted', ids);
      return worker.preempted(ids);
    },
    startLoad() {
      check('startLoad', 'it comes once in a step, after beginStep and preempted', 'begun');
      worker.startLoad();
      phase = 'loading';
    },
    async waitForLayer(layerId, options) {
      check('waitForLayer', 'it comes between startLoad and waitForSave', 'loading');
      checkLayer('waitForLayer', layerId);
      return worker.waitForLayer(layerId, options);
    },
    saveLayer(layerId) {
      check('saveLayer', 'it comes between startLoad and waitForSave', 'loading');
      checkLayer('saveLayer', layerId);
      if (saved.has(layerId))
        throw new AdapterError('call-order', `${name}, saveLayer: layer ${layerId} has written in this step; once for each`);
      worker.saveLayer(layerId);
      saved.add(layerId);
    },
    async waitForSave(options) {
      check('waitForSave', 'it comes after startLoad and the layers', 'loading', 'saved');
      await worker.waitForSave(options);
      // Unless the step was given up meanwhile, and is another one now.
      if (phase === 'loading') phase = 'saved';
    },
    finished(announced) {
      check('finished', 'it comes between waitForSave and endStep', 'saved');
      checkIds('finished', announced);
      return worker.finished(announced);
    },
    failedPages() {
      check('failedPages', 'it comes between waitForSave and endStep', 'saved');
      return worker.failedPages();
    },
    endStep() {
      check('endStep', 'wait for the saves first: pages may be overwritten when it returns', 'saved');
      worker.endStep();
      phase = 'outside of a step';
    },
  };
}
