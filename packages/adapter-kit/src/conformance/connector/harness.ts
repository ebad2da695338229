import type { KvConnector } from '../../connector/kv-connector.ts';
import type { SuiteHarness } from '../suite.ts';

/** What an author of a connector tells the suite. */
export interface KvConnectorHarness extends SuiteHarness {
  /** A fresh connector, not registered yet, whose store shares nothing with others. */
  create(): KvConnector | Promise<KvConnector>;
  /** Closes the connector and removes what it left. Default: `connector.close()`. */
  destroy?(connector: KvConnector): void | Promise<void>;
  /** Another connector on the same store, beside the first: another process, or the same after a restart. */
  another(connector: KvConnector): KvConnector | Promise<KvConnector>;
  /** Spoils every page in the store, so that it seems to be there and cannot be read. */
  spoil?(connector: KvConnector): void | Promise<void>;
}
