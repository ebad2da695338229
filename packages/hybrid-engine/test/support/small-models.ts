import { readGgufModel } from '../../src/gguf/gguf-model.ts';
import { type OracleModel, oracleAnswers, oracleFile } from '../../src/gguf/testing/oracle-models.ts';
import type { EngineModel } from '../../src/model/engine-model.ts';
import { readModel } from '../../src/model/model.ts';
import { type ExpectedAnswer, whalerAnswers, whalerFiles } from '../../src/model/testing/whaler-files.ts';

/** A model, and text that it was made for: as many tokens as anybody here asks for. */
export interface SmallModel {
  readonly model: EngineModel;
  readonly text: readonly number[];
}

/** One of the tiny models with random weights. */
export function oracleModel(name: OracleModel): SmallModel {
  return { model: readGgufModel(oracleFile(name)), text: oracleAnswers(name)[5].prompt };
}

/** The demo model with windows so short that prompts are longer than what they look back at, and no sinks, whose pages are live for ever. */
export function shortSightedWhaler(): SmallModel {
  const files = whalerFiles();
  const config = { ...JSON.parse(new TextDecoder().decode(files.config)), sliding_window: 20, num_sink_tokens: 0 };
  const model = readModel({ ...files, config: new TextEncoder().encode(JSON.stringify(config)) });
  return { model, text: whaler().text };
}

/** The demo model: windows of 128 with four sinks. */
export function whaler(): SmallModel {
  const { ids } = whalerAnswers().find(({ name }) => name === 'long') as ExpectedAnswer;
  return { model: readModel(whalerFiles()), text: ids };
}
