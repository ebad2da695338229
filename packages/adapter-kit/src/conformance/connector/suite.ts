import type { KvConnector } from '../../connector/kv-connector.ts';
import { settled } from '../assertions.ts';
import { lifecyclePromises } from '../lifecycle-trait.ts';
import { DEFAULT_PATIENCE_MS, type Suite } from '../suite.ts';
import type { KvConnectorHarness } from './harness.ts';
import {
  beyondLocal,
  events,
  failures,
  forgetsOrders,
  givesBack,
  holes,
  isolates,
  lookups,
  preempts,
  refusesPrivate,
  resets,
  roundTrip,
  savesInTime,
  snapshots,
  unknown,
} from './promises.ts';
import { ConnectorStage, stageLayout } from './stage.ts';

/** What every connector does. */
export const kvConnectorSuite: Suite<KvConnectorHarness> = {
  kind: 'connector',
  promises: [
    roundTrip,
    lookups,
    beyondLocal,
    isolates,
    refusesPrivate,
    holes,
    failures,
    forgetsOrders,
    savesInTime,
    preempts,
    givesBack,
    snapshots,
    events,
    resets,
    unknown,
    ...lifecyclePromises<KvConnectorHarness, KvConnector>({
      async open(harness) {
        const patienceMs = harness.patienceMs ?? DEFAULT_PATIENCE_MS;
        const connector = await harness.create();
        new ConnectorStage(connector, stageLayout(connector), patienceMs);
        const end = async () => (harness.destroy ? harness.destroy(connector) : connector.close());
        return { plugin: connector, end: () => settled(end(), patienceMs, 'destroy') };
      },
      calls: { resetCache: (connector, options) => connector.resetCache(options) },
    }),
  ],
  async supports(harness) {
    const connector = await harness.create();
    await (harness.destroy ? harness.destroy(connector) : connector.close());
    return connector.supports;
  },
};
