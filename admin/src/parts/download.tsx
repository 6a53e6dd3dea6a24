import { Button, type ButtonProps } from '@mantine/core';
import { IconDownload, IconPlayerStop } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { notifyProblem } from './problem.tsx';
import { saveBlob } from './save-file.ts';

type Answer = { data?: Blob; response: Response };

/** Downloads an answer with the credentials of the page, which a link would not send. While it comes in it can be stopped. */
export function Download(
  props: ButtonProps & { label: string; 'aria-label'?: string; load(signal: AbortSignal): Promise<Answer> },
) {
  const { 'aria-label': name, label, load, ...look } = props;
  const { t } = useTranslation();
  const [isLoading, setLoading] = useState(false);
  const end = useRef<AbortController | null>(null);
  useEffect(() => () => end.current?.abort(), []);
  const download = async (): Promise<void> => {
    const stop = new AbortController();
    end.current = stop;
    setLoading(true);
    try {
      const answer = await load(stop.signal);
      const [, name = 'download'] =
        /filename="([^"]+)"/.exec(answer.response.headers.get('content-disposition') ?? '') ?? [];
      saveBlob(name, answered(answer));
    } catch (problem) {
      // What is cut off in the middle is no refusal of the service.
      if (!stop.signal.aborted) notifyProblem(problem instanceof ApiProblem ? problem : new ApiProblem(0, null));
    } finally {
      setLoading(false);
    }
  };
  return (
    <Button
      variant="default"
      {...look}
      // The text says what a click does meanwhile.
      aria-label={isLoading ? undefined : name}
      leftSection={isLoading ? <IconPlayerStop size={16} aria-hidden /> : <IconDownload size={16} aria-hidden />}
      onClick={() => (isLoading ? end.current?.abort() : void download())}
    >
      {isLoading ? t('common.stopDownload') : label}
    </Button>
  );
}
