import { apiDocument } from '../api/docs-api.ts';
import { jsonText } from './json-text.ts';

/** `openapi`: the document of the API, as the service serves it at /api/openapi.json. @returns what to print */
export function openapiCommand(): string {
  return jsonText(apiDocument());
}
