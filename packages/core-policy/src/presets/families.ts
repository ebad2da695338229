import { describe } from '../config/read-fields.ts';
import { deepseekV3 } from './families/deepseek-v3.ts';
import { deepseekV32 } from './families/deepseek-v32.ts';
import { falconH1 } from './families/falcon-h1.ts';
import { gemma2 } from './families/gemma2.ts';
import { gemma3 } from './families/gemma3.ts';
import { gptOss } from './families/gpt-oss.ts';
import { graniteHybrid } from './families/granite-hybrid.ts';
import { jamba } from './families/jamba.ts';
import { llama } from './families/llama.ts';
import { mamba2 } from './families/mamba2.ts';
import { mistral } from './families/mistral.ts';
import { nemotronH } from './families/nemotron-h.ts';
import { phi3 } from './families/phi3.ts';
import { qwen } from './families/qwen.ts';
import { qwen3Next } from './families/qwen3-next.ts';
import type { Family } from './family.ts';
import { fieldOf, type ModelFields, pathOf } from './model-fields.ts';

/** All families. A new one is a file in `families/` and a line here. */
const FAMILIES: readonly Family[] = [
  llama,
  mistral,
  phi3,
  qwen,
  gemma2,
  gemma3,
  gptOss,
  jamba,
  nemotronH,
  graniteHybrid,
  qwen3Next,
  falconH1,
  mamba2,
  deepseekV3,
  deepseekV32,
];

/** Architectures looked at; a file names one. */
const LISTED_ARCHITECTURES = 8;

/** The family that `model_type` names, else the one that `architectures` names; undefined when neither is known. */
export function familyOf(model: ModelFields): Family | undefined {
  const modelType = fieldOf(model, 'model_type');
  const byType = FAMILIES.find((family) => family.modelTypes.some((known) => known === modelType));
  if (byType !== undefined) return byType;
  const architectures = fieldOf(model, 'architectures');
  const names: readonly unknown[] = Array.isArray(architectures) ? architectures.slice(0, LISTED_ARCHITECTURES) : [];
  return FAMILIES.find((family) => family.architectures.some((known) => names.includes(known)));
}

/** Notes that no family is known by these names. */
export function noteUnknownFamily(model: ModelFields): void {
  const value = fieldOf(model, 'model_type');
  const known = FAMILIES.flatMap((family) => family.modelTypes).join(', ');
  const message =
    `expected the model_type of a known family, got ${describe(value)}, and architectures names none either. Known are ` +
    `${known}. Write the layers of another model yourself.`;
  model.faults.note('preset-unknown-family', pathOf(model, 'model_type'), value, message);
}
