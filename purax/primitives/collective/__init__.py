"""Operations over named axes."""
